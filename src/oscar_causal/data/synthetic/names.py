"""Readable names: trouble codes with descriptions, and labels, from word lists of our own."""

from __future__ import annotations

import numpy as np

from oscar_causal.data.synthetic.streams import below, permutation

_COMPONENTS = {
    "P": (
        "fuel rail pressure sensor",
        "intake air flow meter",
        "throttle actuator",
        "exhaust gas valve",
        "turbocharger wastegate",
        "camshaft position sensor",
        "injector driver",
        "coolant pump",
        "particulate filter",
        "ignition coil",
        "oil level sensor",
        "gearbox clutch valve",
        "traction battery cell",
        "inverter stage",
        "charge plug latch",
        "tank vent valve",
    ),
    "C": (
        "wheel speed sensor",
        "brake fluid level switch",
        "steering torque sensor",
        "steering angle sensor",
        "damper valve",
        "air spring compressor",
        "parking brake motor",
        "yaw rate sensor",
        "brake booster",
        "pad wear contact",
        "ride height sensor",
        "anti-roll motor",
    ),
    "B": (
        "seat heater",
        "window lift motor",
        "door lock actuator",
        "rain sensor",
        "headlamp levelling motor",
        "interior fan",
        "airbag igniter loop",
        "belt buckle switch",
        "mirror fold motor",
        "sunroof drive",
        "cabin temperature sensor",
        "tail lamp cluster",
        "wiper motor",
        "keyless antenna",
    ),
    "U": (
        "engine controller bus",
        "brake controller bus",
        "gateway",
        "camera link",
        "radar link",
        "telematics unit",
        "display link",
        "battery management link",
        "steering controller bus",
        "body controller bus",
        "lighting sub-bus",
        "diagnostic port",
    ),
}
_PLACES = (
    "",
    "front left ",
    "front right ",
    "rear left ",
    "rear right ",
    "upper ",
    "lower ",
    "bank 1 ",
    "bank 2 ",
    "main ",
)
_CONDITIONS = (
    "signal implausible",
    "signal above range",
    "signal below range",
    "open circuit",
    "short to ground",
    "short to supply",
    "no response",
    "response too slow",
    "value frozen",
    "intermittent contact",
    "supply voltage low",
    "supply voltage high",
    "overheated",
    "calibration lost",
    "message missing",
    "message checksum wrong",
    "stuck closed",
    "stuck open",
    "wear limit reached",
    "not learned",
)
_SUBJECTS = (
    "steering assist",
    "brake assist",
    "lane keeping",
    "adaptive cruise",
    "engine power",
    "gear change",
    "cabin climate",
    "battery charging",
    "high-voltage isolation",
    "air suspension",
    "parking aid",
    "exterior lighting",
    "door locking",
    "seat adjustment",
    "fuel supply",
    "exhaust cleaning",
    "cold start",
    "remote access",
    "rear camera",
    "stability control",
)
_FAILURES = (
    "degraded",
    "switched off",
    "unavailable",
    "delayed",
    "limited",
    "unstable",
    "noisy",
    "interrupted",
    "out of tolerance",
    "on reserve",
)
VARIANTS = ("hatchback petrol", "hatchback electric", "saloon petrol", "saloon diesel", "estate diesel", "van electric")
"""What a car can be; known at the start of its sequences."""


def event_codes(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    """`count` different codes like P0A1F; longer ones when five characters do not suffice.

    >>> event_codes(np.random.default_rng(0), 2)
    ('U12A4', 'C23D4')
    """
    digits = 3
    while 16 * 16**digits < count:
        digits += 1
    numbers = permutation(rng, 16 * 16**digits)[:count].tolist()
    return tuple(f"{'PCBU'[n // 16**digits // 4]}{n // 16**digits % 4}{n % 16**digits:0{digits}X}" for n in numbers)


def event_descriptions(rng: np.random.Generator, codes: tuple[str, ...]) -> dict[str, str]:
    """A short description of each code, fitting its first letter (powertrain, chassis, body, network)."""
    places = below(rng, np.full(len(codes), len(_PLACES)))
    components = below(rng, [len(_COMPONENTS[code[0]]) for code in codes])
    conditions = below(rng, np.full(len(codes), len(_CONDITIONS)))
    texts = {}
    for code, place, component, condition in zip(codes, places, components, conditions, strict=True):
        text = f"{_PLACES[place]}{_COMPONENTS[code[0]][component]}: {_CONDITIONS[condition]}"
        texts[code] = text[0].upper() + text[1:]
    return texts


def label_names(rng: np.random.Generator, count: int) -> tuple[str, ...]:
    """`count` different labels like "steering assist degraded 017"."""
    width = max(3, len(str(count - 1)))
    subjects, failures = below(rng, np.full(count, len(_SUBJECTS))), below(rng, np.full(count, len(_FAILURES)))
    pairs = zip(subjects, failures, strict=True)
    return tuple(f"{_SUBJECTS[s]} {_FAILURES[f]} {number:0{width}d}" for number, (s, f) in enumerate(pairs))


def label_descriptions(labels: tuple[str, ...]) -> dict[str, str]:
    """A sentence for each label."""
    texts = {}
    for label in labels:
        text, _, number = label.rpartition(" ")
        texts[label] = f"Error pattern {int(number)}: {text}"
    return texts
