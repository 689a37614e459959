"""`python -m oscar_causal` is the command `oscar`."""

from oscar_causal.cli import main

if __name__ == "__main__":
    main()
