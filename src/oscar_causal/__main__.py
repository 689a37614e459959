"""`python -m oscar_causal` is the command `oscar`."""

from oscar_causal.signals import end_on_signals


def main() -> None:
    """The command; from its first moment on a signal ends it with one line."""
    end_on_signals()
    from oscar_causal.cli import main as run

    run()


if __name__ == "__main__":
    main()
