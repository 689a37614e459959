"""What each estimator does, assumes and promises, in sentences; figures come from the settings of the run."""

from __future__ import annotations

from typing import Any

CLASSICAL = ("iamb", "cmb", "mb-by-mb", "pcd-by-pcd", "mi-mcf")
_CORRECTIONS = {
    "bonferroni": ", corrected by Bonferroni for the candidates examined together",
    "bh": ", corrected by Benjamini and Hochberg for the candidates examined together",
    "none": ", not corrected for the number of tests",
}
_SHARED = (
    "that events influence only what comes at or after their own time, that nothing which influences both events "
    "and outcomes is unrecorded, and that dependence and causation go together (faithfulness)"
)
_DIRECT = (
    "A verdict is a statement about the model's prediction: a direct effect with the rest of the sequence as context, "
    "so that a cause whose whole effect runs through recorded later events gets no credit."
)
_FORECAST = (
    "A verdict says that the event moved the model's forecast when it came. An event that only announces a cause moves "
    "the forecast too."
)


def settings_of(run: dict[str, Any]) -> dict[str, Any]:
    """The estimator's own settings."""
    config = run.get("config") or {}
    name = run.get("estimator")
    if name in CLASSICAL:
        return dict(config.get("tests") or {})
    own = config.get("intervention" if name == "fused" else str(name))
    return dict(own) if isinstance(own, dict) else {}


def estimator_words(run: dict[str, Any]) -> str:
    """How the estimate comes about."""
    name, config = str(run.get("estimator")), settings_of(run)
    if name in ("intervention", "fused"):
        words = (
            f"For every sequence at most {config.get('contexts')} contexts were drawn in which event types are "
            "replaced at random at all their occurrences; the effect of a type is the difference in the mean "
            "predicted probability of the label between contexts that keep it and contexts that replace it. "
            "Candidates were chosen in contexts that the tests do not use."
        )
        return words if name == "intervention" else f"{words} This evidence was combined with that of the whole fleet."
    if name == "prefix":
        return (
            f"The first {config.get('context')} events were resampled in {config.get('contexts')} contexts (sampler "
            f"{config.get('sampler')}); the information gain of each later event over the forecast of the label was "
            "averaged over them."
        )
    if name in CLASSICAL:
        return (
            f"Conditional independence was tested with {config.get('statistic')} on the presence of events in the "
            "labelled sequences; a label's boundary was then read in each sequence as those of its events that occur "
            "there."
        )
    return f"The estimator is a function supplied by the user ({name})."


def assumption_words(run: dict[str, Any]) -> str:
    """What must hold for a verdict to speak about the world."""
    name = run.get("estimator")
    if name in CLASSICAL:
        return f"Reading a boundary as causes assumes, and does not test, {_SHARED}."
    about = {"intervention": _DIRECT, "fused": _DIRECT, "prefix": _FORECAST}
    return (
        f"{about.get(str(name), 'A verdict is a statement about the model.')} Reading it as a cause in the world "
        f"assumes, and does not test, {_SHARED}; that influences do not reach back further than the events the model "
        "sees; and that the model's probabilities are close to the true ones."
    )


def error_words(run: dict[str, Any]) -> str:
    """Which error rate is controlled, where, and how far that is proven."""
    name, config = str(run.get("estimator")), settings_of(run)
    if name == "intervention":
        return (
            "Within each pair of a sequence and a label, event types were tested against effects of at most "
            f"{config.get('delta')} by redrawing their own replacement masks ({_redraw_words(config)}), and the false "
            f"discovery rate was controlled at {config.get('alpha')} by the Benjamini-Hochberg procedure. "
            "The tests are exact for types whose replacement changes the prediction in no context; for small effects "
            "the rate was checked in simulations, not proven. No error rate is controlled across sequences or labels, "
            f"and none certifies statements about the world.{_score_words(config)}"
        )
    if name == "fused":
        return (
            "An event is accepted when it is more probably a cause than not and the share of non-causes expected among "
            f"all events of the fleet that are at least as probable is at most {config.get('alpha')}, under the fitted "
            "two-group model."
        )
    if name == "prefix":
        return (
            "No error rate is controlled: an event is accepted when its information gain exceeds the mean of its "
            f"sequence by more than {config.get('threshold')} standard deviations."
        )
    if name in CLASSICAL:
        correction = _CORRECTIONS.get(str(config.get("correction")), "")
        return (
            f"Tests were made at level {config.get('alpha')}{correction}. The level holds for one search step; none is "
            "claimed for the boundary as a whole or across labels."
        )
    return "No error rate is claimed: acceptance is up to the user's function."


def _redraw_words(config: dict[str, Any]) -> str:
    """How many redraws; folders from before acceptance by score do not tell whether there were more than the first."""
    if "tested_only" not in config:
        return f"at least {config.get('redraws')} redraws"
    return f"{config.get('redraws')} redraws at first, more where few of them reached what was seen"


def _score_words(config: dict[str, Any]) -> str:
    """What else is accepted; nothing under `tested_only`, and nothing in folders older than that setting."""
    told = config.get("tested_only")
    if told is None:
        return ""
    if told:
        return " Nothing was accepted that a test had not shown."
    if "odds_fall" not in config:  # from before these constants were recorded
        return " Besides, types that no test had shown were accepted by score; no error rate is controlled for them."
    return (
        " Besides, where slopes of the label model ranked the types, one that no test had shown was accepted by score "
        f"if its pull on the log odds of the label was at least {config['least_share']} of the strongest one's and the "
        f"odds fell by at least {config['odds_fall']} of themselves without it; no error rate is controlled for types "
        "accepted by score."
    )
