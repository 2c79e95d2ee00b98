"""What a sender is told of times that are not those of arrival."""

from collections.abc import Mapping

from diagnostics.figures import plural
from diagnostics.store.windows import TimeMark

SENTENCES = {
    TimeMark.AHEAD: "{} more than 5 minutes ahead of this server's clock, counted on arrival",
    TimeMark.LATE: "{} more than 15 minutes late: in charts, but not in alert rules",
}


def sentences_of(marks: Mapping[str, int]) -> Mapping[TimeMark, str]:
    """Return a sentence for each mark that new items have."""
    return {
        mark: sentence.format(plural(marks[mark], "item"))
        for mark, sentence in SENTENCES.items()
        if marks.get(mark)
    }


def time_warnings(marks: Mapping[str, int]) -> list[dict[str, str]]:
    return [
        {"path": "", "code": mark.value, "message": sentence}
        for mark, sentence in sentences_of(marks).items()
    ]
