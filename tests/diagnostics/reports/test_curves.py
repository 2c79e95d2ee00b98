"""Curves as PNG: a picture that a reader of PNG accepts, with what it is to show."""

from struct import unpack
from zlib import crc32, decompress

from diagnostics.reports.curves import BAD, BAD_EDGE, CALM, HEIGHT, LINE, PAPER, WIDTH, draw_curve


def read_png(png: bytes) -> list[bytes]:
    """Read the rows of a picture, as any program would; checksums must be right."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    found, at = {}, 8
    while at < len(png):
        (size,) = unpack(">I", png[at : at + 4])
        kind, body = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert unpack(">I", png[at + 8 + size : at + 12 + size]) == (crc32(kind + body),)
        found[kind], at = body, at + 12 + size
    assert list(found) == [b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"]
    assert unpack(">II", found[b"IHDR"][:8]) == (WIDTH, HEIGHT)
    assert found[b"tRNS"][PAPER] == 0
    rows = decompress(found[b"IDAT"])
    lines = [rows[at : at + WIDTH + 1] for at in range(0, len(rows), WIDTH + 1)]
    assert {line[0] for line in lines} == {0}
    return [line[1:] for line in lines]


def test_a_picture_shows_each_slot_and_reddens_from_the_onset_on() -> None:
    rows = read_png(draw_curve([0.1, None, 0.2, 0.4], bad_from=2))
    assert len(rows) == HEIGHT
    places = [WIDTH * at // 8 for at in (1, 3, 5, 7)]
    columns = [{row[x] for row in rows[:-2]} for x in places]
    assert columns == [{PAPER, CALM, LINE}, {PAPER}, {PAPER, BAD, BAD_EDGE}, {BAD, BAD_EDGE}]
    heights = [sum(row[x] != PAPER for row in rows) for x in places]
    assert heights[1] == 2
    assert heights[2] * 2 - heights[3] < 12
    assert set(rows[-1]) == {LINE}


def test_the_baseline_is_dashed_and_noise_stays_low() -> None:
    rows = read_png(draw_curve([None, None], baseline=0.04))
    dashed = [row for row in rows[:-2] if LINE in row]
    assert len(dashed) == 3
    assert {row.count(LINE) for row in dashed} == {WIDTH // 2}
    noise = read_png(draw_curve([0.001, 0.002]))
    assert set(b"".join(noise[: HEIGHT // 2])) == {PAPER}


def test_a_picture_is_small() -> None:
    noisy = [(at * 37 % 100) / 100 for at in range(31)]
    assert len(draw_curve(noisy, 0.04, 20)) < 3_000
