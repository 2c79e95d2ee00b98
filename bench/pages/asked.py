"""What is asked of the pages that have filters: every range, and what people narrow to."""

RANGES = ("7d", "30d", "90d")
"""Beside 24 hours, which a page shows unless told."""
BOARDS = ("/", "/models/", "/failures/", "/compare/", "/prompts/", "/runs/")
FILTERS = (
    "provider=provider-1",
    "model=model-7",
    "kind=truncated",
    "prompt_version=v4",
    "q=truncated",
    "q=pointer:/steps/2/tool",
)
# Words and pointers are looked for in single events, of seven days at most.
SEARCHED = (
    "/failures/?range=7d&q=nowhere",
    "/failures/?range=7d&q=pointer:/nowhere",
    "/runs/?follow=calls&q=truncated",
    "/runs/?q=nowhere",
    "/runs/?q=corr:nowhere",
    "/runs/?kind=nothing&range=90d",
    "/runs/?schema=nothing&range=90d",
    "/runs/?node=plan&outcome=degraded&range=30d",
    "/runs/?follow=runs",
)
QUERIES = (
    *(f"{board}?range={span}" for board in BOARDS for span in RANGES),
    *(f"{board}?{asked}" for board in BOARDS for asked in FILTERS),
    *(f"{board}?range=30d&{FILTERS[0]}" for board in BOARDS),
    *SEARCHED,
    "/search/?q=run-1",
    "/search/?q=model-7",
)
"""Addresses, beside those of `tests.console_pages`."""
