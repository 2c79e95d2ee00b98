"""Which URLs a tool may fetch (S17): one row per trick."""

import pytest

from diagnostics.outbound.addresses import ForbiddenAddressError, Resolve, choose_target


def _resolving(*addresses: str) -> Resolve:
    """A name server that always gives these addresses."""
    return lambda host, port: list(addresses)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",  # noqa: S104 - an address to be refused
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",  # metadata of cloud machines
        "100.64.0.1",  # carrier-grade NAT
        "192.0.2.1",  # documentation
        "198.18.0.1",  # benchmarks
        "224.0.0.1",  # multicast
        "240.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "::ffff:127.0.0.1",  # IPv4 in IPv6
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "64:ff9b::7f00:1",  # NAT64
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",  # 6to4
        "2002:a9fe:a9fe::1",
        "2001:0:7f00:1::",  # Teredo
        "64:ff9b:1::7f00:1",  # NAT64 of one's own network
        "::ffff:0:127.0.0.1",  # translated IPv4
        "3fff::1",  # documentation
        "5f00::1",  # segment routing
        "192.0.0.8",  # protocols
        "192.88.99.1",  # relays of 6to4
        "168.63.129.16",  # settings and secrets of a virtual machine at Azure
    ],
)
def test_s17_a_name_of_a_private_address_is_refused(address: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        choose_target("http://name.example/", resolve=_resolving(address))


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "1.1.1.1", "2606:4700:4700::1111", "64:ff9b::101:101"]
)
def test_s17_a_public_address_is_pinned(address: str) -> None:
    target = choose_target("https://name.example/a?b", resolve=_resolving(address))
    assert str(target.address) == address
    assert target.authority == "name.example"
    assert address in target.pinned_url
    assert target.pinned_url.endswith(":443/a?b")


def test_s17_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(ForbiddenAddressError):
        choose_target("http://x.example/", resolve=_resolving("1.1.1.1", "10.0.0.1"))


def test_s17_private_ranges_open_only_by_setting() -> None:
    target = choose_target(
        "http://x.example:81/", allow_private=True, resolve=_resolving("10.0.0.1")
    )
    assert target.pinned_url == "http://10.0.0.1:81/"
    assert target.authority == "x.example:81"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "name.example",
        "//name.example/",
        "file:///etc/passwd",
        "ftp://name.example/",
        "gopher://name.example/",
        "javascript:alert(1)",
        "http://",
        "http:///path",
        "http://user@name.example/",
        "http://user:pass@name.example/",
        "http://@name.example/",
        "http://name.example\\@10.0.0.1/",
        "http://name.example /",
        "http://name.example/\r\nHost: other",
        "http://name.example:99999/",
        "http://name.example:port/",
        "http://[::1/",
        "http://a..b/",
        f"http://{'a' * 64}.example/",
    ],
)
def test_s17_a_url_with_a_trick_is_refused(url: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        choose_target(url, resolve=_resolving("1.1.1.1"))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]"]
)
def test_s17_loopback_by_any_spelling_is_refused(host: str) -> None:
    with pytest.raises(ForbiddenAddressError):
        choose_target(f"http://{host}/")


def test_a_name_in_any_script_is_asked_for_in_ascii() -> None:
    target = choose_target("http://b\u00fccher.example/", resolve=_resolving("1.1.1.1"))
    assert target.authority == "xn--bcher-kva.example"


def test_s17_loopback_in_full_width_digits_is_refused() -> None:
    with pytest.raises(ForbiddenAddressError):
        choose_target("http://\uff11\uff12\uff17.0.0.1/")


def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(ForbiddenAddressError):
        choose_target("http://x.example/", resolve=_resolving())
    with pytest.raises(ForbiddenAddressError):
        choose_target("http://x.example/", resolve=_resolving("nonsense"))
