"""The console's filters as query parameters, read strictly (docs/http-api.md, "Reading")."""

from collections.abc import Collection, Iterable, Mapping

import pydantic
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.settings import api_settings

from diagnostics.figures import read_number
from diagnostics.rest.bodies import ModelT
from diagnostics.rest.cursors import Row
from diagnostics.selection.fields import COUNTED, OUTCOME_NAMES, RANGES, RAW, SERIES, VERSION
from diagnostics.selection.selection import (
    UNKNOWN_PARAMETER,
    Selection,
    SelectionError,
    require_selection,
)
from failsoft.json_values import clean_text

MAX_LIMIT = 500
DEFAULT_LIMIT = 100
TIME_PARAMETERS = [
    OpenApiParameter("range", str, enum=list(RANGES), description="ends now"),
    OpenApiParameter("from", str, description="first moment, RFC 3339 with offset"),
    OpenApiParameter("to", str, description="moment after the last one"),
    OpenApiParameter("tz", str, description="zone of times without an offset"),
]
SERIES_PARAMETERS = [
    *TIME_PARAMETERS,
    *(
        OpenApiParameter(field.name, str, description=field.meaning)
        for field in (*SERIES, *VERSION)
    ),
    OpenApiParameter("q", str, description='model:haiku -env:dev "words"'),
]
FORMAT_PARAMETER = OpenApiParameter(
    "format", str, enum=["json", "csv", "ndjson"], description="instead of Accept"
)
PAGE_PARAMETERS = [
    OpenApiParameter("limit", int, description=f"1 to {MAX_LIMIT}"),
    OpenApiParameter("cursor", str, description="`next` of the page before"),
    FORMAT_PARAMETER,
]
EVENT_PARAMETERS = [
    *SERIES_PARAMETERS,
    *(
        OpenApiParameter(
            field.name,
            int if field.name == "attempt" else str,
            enum=list(OUTCOME_NAMES) if field.name == "outcome" else None,
            description=field.meaning,
        )
        for field in (*COUNTED, *RAW)
    ),
    *PAGE_PARAMETERS,
]
CODES = {UNKNOWN_PARAMETER: "unknown_parameter"}
PAGING = frozenset({"limit", "cursor", "format"})


def select(
    params: Mapping[str, str], fields: Iterable[OpenApiParameter], also: Iterable[str] = ()
) -> Selection:
    """Return the selection of a request; ValidationError (400) names invalid filters.

    Only the parameters in `fields`, paging and `also` are known.
    """
    known = {parameter.name for parameter in fields} | PAGING | set(also)
    try:
        return require_selection(params, known)
    except SelectionError as error:
        raise refusal_of(error.faults) from error


def refuse_unknown(params: Mapping[str, str], fields: Iterable[OpenApiParameter]) -> None:
    known = {parameter.name for parameter in fields} | PAGING
    unknown = [clean_text(name)[:200] for name in params if name not in known]
    if unknown:
        raise refusal_of(dict.fromkeys(unknown, UNKNOWN_PARAMETER))


def filter_exactly(
    rows: QuerySet[Row], params: Mapping[str, str], names: Iterable[str]
) -> QuerySet[Row]:
    """Return the rows with the given values in these columns."""
    values = {name: params[name].replace("\0", "") for name in names if params.get(name)}
    return rows.filter(**values)


def read_choices(params: Mapping[str, str], known: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Return filters with a closed set of values; ValidationError (400) names invalid ones."""
    values = {name: params[name] for name in known if params.get(name)}
    faults = {
        name: f"one of {', '.join(known[name])}"
        for name, value in values.items()
        if value not in known[name]
    }
    if faults:
        raise refusal_of(faults)
    return values


def read_options(model: type[ModelT], options: object) -> ModelT:
    """Return options as their model; ValidationError (400) names each invalid one."""
    try:
        return model.model_validate(options)
    except pydantic.ValidationError as error:
        faults = {
            _name_of(item["loc"]): UNKNOWN_PARAMETER
            if item["type"] == "extra_forbidden"
            else item["msg"]
            for item in error.errors(include_input=False, include_url=False)
        }
        raise refusal_of(faults) from error


def _name_of(location: tuple[int | str, ...]) -> str:
    return clean_text(str(location[0]))[:200] if location else api_settings.NON_FIELD_ERRORS_KEY


def refusal_of(faults: Mapping[str, str]) -> ValidationError:
    """Return the 400 for faults by parameter; an unknown parameter has its own code."""
    return ValidationError(
        {
            name: ErrorDetail(text, CODES.get(text, ValidationError.default_code))
            for name, text in faults.items()
        }
    )


def read_limit(params: Mapping[str, str]) -> int:
    """Return `limit`: 100 by default, at most 500."""
    return read_optional_limit(params, MAX_LIMIT) or DEFAULT_LIMIT


def read_optional_limit(params: Mapping[str, str], maximum: int) -> int | None:
    """Return `limit`; None if it is missing."""
    if "limit" not in params:
        return None
    limit = read_number(params["limit"])
    if limit is None or not 1 <= limit <= maximum:
        raise ValidationError({"limit": f"a number from 1 to {maximum}"})
    return limit
