"""``python -m scaletest`` is the ``scaletest`` command."""

from scaletest.cli.main import main

if __name__ == "__main__":
    main()
