"""`python -m longtail`."""

from longtail.cli.main import main

raise SystemExit(main())
