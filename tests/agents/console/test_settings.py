"""The settings pages: administrators change, others learn why not, every change is noted."""

import json
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.urls import reverse

from agents.demo.loading import load
from agents.goals.models import Goal, PlanningStop
from agents.jobs import PurgeOrder
from agents.llm.model_test import try_model
from agents.llm.models import LanguageModel, ModelCheck, Provider
from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import details_of
from diagnostics.accounts.invitations import LastAdminError, change_role, remove
from diagnostics.accounts.models import ApiKey, AuditEntry, Invitation, Membership, Project
from diagnostics.accounts.projects import LOCAL_KEY_NAME, issue_key
from diagnostics.ingest.models import Quota
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from tests.agents.llm.wires import Fault, Say, Wire
from tests.console import make_goal, make_model
from tests.diagnostics.builders import make_event, wire_event
from tests.signing import join, make_person, signed_in

pytestmark = pytest.mark.django_db
PAGES = (
    "settings_projects",
    "settings_members",
    "settings_keys",
    "settings_providers",
    "settings_planning",
    "settings_quotas",
    "settings_retention",
    "settings_purge",
    "settings_mail",
    "settings_audit",
    "add_provider",
    "redaction",
)


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="mine", name="Mine")


@pytest.fixture
def admin(project: Project) -> Client:
    join(make_person("ada"), project, "admin")
    return signed_in("ada")


@pytest.fixture
def viewer(project: Project) -> Client:
    join(make_person("vic"), project, "viewer")
    return signed_in("vic")


def noted() -> list[str]:
    rows = AuditEntry.objects.exclude(action__startswith="sign_in")
    return list(rows.order_by("id").values_list("action", flat=True))


def forget_proof(client: Client) -> None:
    """Let the sign-in lie 11 minutes back."""
    session = client.session
    for method in session[AUTHENTICATION_METHODS_SESSION_KEY]:
        method["at"] = time.time() - 660
    session.save()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_administrators_see_every_page(admin: Client, name: str) -> None:
    answer = admin.get(reverse(name))
    assert answer.status_code == 200
    assert 'aria-label="Settings"' in answer.content.decode()


@pytest.mark.parametrize("name", [name for name in PAGES if name != "redaction"])
def test_others_learn_who_may(admin: Client, viewer: Client, name: str, project: Project) -> None:
    answer = viewer.get(reverse(name))
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "You are <b>viewer</b>" in page
    assert "ada" in page


def test_settings_lead_to_the_first_page(admin: Client) -> None:
    assert admin.get("/settings/").headers["Location"] == "/settings/projects/"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("settings_keys", {"name": "k", "scopes": ["ingest"]}),
        ("settings_members", {"role": "viewer"}),
        ("add_provider", {"name": "p", "adapter": "openai"}),
        ("settings_purge", {"typed": "Mine"}),
    ],
)
def test_s22_keys_members_providers_and_purges_ask_again_who_one_is(
    admin: Client, name: str, sent: dict[str, Any]
) -> None:
    forget_proof(admin)
    answer = admin.post(reverse(name), sent)
    assert answer.status_code == 302
    assert answer.headers["Location"].startswith("/accounts/reauthenticate/")
    assert noted() == []
    # Once proven, what was sent is carried out.
    admin.post(answer.headers["Location"], {"password": "correct horse battery staple"})
    assert len(noted()) == 1


def test_administrators_without_a_second_factor_are_led_to_it(admin: Client, settings: Any) -> None:
    settings.FAILSOFT_REQUIRE_MFA = True
    answer = admin.get("/settings/keys/")
    assert answer.headers["Location"] == "/accounts/2fa/"


@pytest.mark.parametrize("path", ["/setup/", "/settings/redaction/"])
def test_without_a_second_factor_administrators_change_nothing(
    admin: Client, settings: Any, path: str
) -> None:
    settings.FAILSOFT_REQUIRE_MFA = True
    answer = admin.post(path, {"name": "n", "kind": "k", "pattern": "p"})
    assert answer.headers["Location"] == "/accounts/2fa/"
    assert noted() == []


def test_a_key_is_shown_once_and_works(admin: Client) -> None:
    asked = {"name": "agent", "scopes": ["read"], "days": "30"}
    answer = admin.post("/settings/keys/", asked, follow=True)
    assert answer.redirect_chain == [("/settings/keys/", 302)]
    assert answer.headers["Cache-Control"] == "no-store"
    text = answer.context["issued"]["text"]
    assert text in answer.content.decode()
    assert text not in admin.get("/settings/keys/").content.decode()
    headers = {"Authorization": f"Bearer {text}"}
    assert Client().get("/api/v1/ingest", headers=headers).status_code == 200
    assert noted() == ["key.created"]
    assert text.split("_", 2)[2] not in AuditEntry.objects.latest("id").details


@pytest.mark.parametrize("scopes", [["ingest"], ["ingest", "read"], ["read"]])
def test_the_command_shown_beside_a_new_key_is_allowed_to_it(
    admin: Client, scopes: list[str]
) -> None:
    asked = {"name": "agent", "scopes": scopes, "days": "30"}
    answer = admin.post("/settings/keys/", asked, follow=True)
    key = answer.context["issued"]["text"]
    has_command = "/api/v1/ingest" in answer.content.decode()
    assert has_command == ("read" in scopes)
    status = Client().get("/api/v1/ingest", headers={"Authorization": f"Bearer {key}"}).status_code
    assert status == (200 if has_command else 403)


def test_a_rotated_key_lasts_as_long_as_the_old_one_did(admin: Client, project: Project) -> None:
    old = issue_key(project, "agent", [Scope.READ], clock.now() + timedelta(days=30)).row
    ApiKey.objects.filter(pk=old.pk).update(
        created_at=old.created_at - timedelta(days=29), expires_at=clock.now() + timedelta(days=1)
    )
    admin.post(reverse("rotate_key", args=[old.pk]))
    new = ApiKey.objects.exclude(pk=old.pk).get(name="agent")
    assert new.expires_at is not None
    assert timedelta(days=29) < new.expires_at - clock.now() <= timedelta(days=31)


def test_a_rotated_key_leaves_two_live_until_one_is_revoked(
    admin: Client, project: Project
) -> None:
    old = issue_key(project, "agent", [Scope.READ])
    answer = admin.post(reverse("rotate_key", args=[old.row.pk]), follow=True)
    new = answer.context["issued"]["text"]

    def ask(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"}
        return Client().get("/api/v1/ingest", headers=headers).status_code

    assert [ask(old.text), ask(new)] == [200, 200]
    admin.post(reverse("revoke_key", args=[old.row.pk]))
    assert [ask(old.text), ask(new)] == [401, 200]
    assert noted() == ["key.rotated", "key.revoked"]


def test_a_key_of_another_project_is_not_found(admin: Client) -> None:
    other = Project.objects.create(slug="other", name="Other")
    key = issue_key(other, "theirs", [Scope.READ]).row
    for name in ("rotate_key", "revoke_key"):
        assert admin.post(reverse(name, args=[key.pk])).status_code == 404
    assert ApiKey.objects.get(pk=key.pk).revoked_at is None


def test_an_invitation_makes_one_person_a_member_once(admin: Client, project: Project) -> None:
    link = admin.post("/settings/members/", {"role": "operator"}, follow=True).context["link"]
    path = urlsplit(link).path
    bob = make_person("bob")
    guest = signed_in("bob")
    assert "operator" in guest.get(path).content.decode()
    guest.post(path)
    assert Membership.objects.get(user=bob).role == "operator"
    carol = make_person("carol")
    assert signed_in("carol").post(path).status_code == 404
    assert not Membership.objects.filter(user=carol).exists()
    assert noted() == ["member.invited", "member.joined"]
    joined = AuditEntry.objects.get(action="member.joined")
    assert details_of(joined) == {"role": "operator", "invited_by": "ada"}


def test_an_invited_stranger_makes_an_account_others_cannot(
    admin: Client, project: Project
) -> None:
    password = "another long battery staple"
    told = {
        "username": "dora",
        "email": "dora@example.org",
        "password1": password,
        "password2": password,
    }
    stranger = Client()
    stranger.post("/accounts/signup/", told)
    assert "_auth_user_id" not in stranger.session
    link = admin.post("/settings/members/", {"role": "viewer"}, follow=True).context["link"]
    path = urlsplit(link).path
    stranger.get(path)
    answer = stranger.post(f"/accounts/signup/?next={path}", {**told, "next": path})
    assert answer.headers["Location"] == path
    stranger.post(path)
    assert Membership.objects.get(user__username="dora").role == "viewer"


def test_an_invitation_leads_to_the_base_url_whatever_the_host_header_says(
    admin: Client, settings: Any
) -> None:
    settings.FAILSOFT_BASE_URL = "https://failsoft.example"
    settings.ALLOWED_HOSTS = ["*"]
    fields = {"role": "viewer", "email": "eve@example.org"}
    admin.post("/settings/members/", fields, headers={"host": "elsewhere.example"})
    (letter,) = mail.outbox
    assert "https://failsoft.example/" in letter.body
    assert "elsewhere" not in letter.body


def test_a_member_who_is_removed_meanwhile_is_no_error(admin: Client, project: Project) -> None:
    member = join(make_person("bob"), project, "viewer")
    Membership.objects.filter(pk=member.pk).delete()
    change_role(member, "admin", member.user)
    remove(member, member.user)
    assert noted() == []


def test_an_invitation_can_be_mailed_and_revoked(admin: Client) -> None:
    answer = admin.post("/settings/members/", {"role": "viewer", "email": "eve@example.org"})
    (letter,) = mail.outbox
    assert letter.to == ["eve@example.org"]
    assert answer.context["link"] in letter.body
    assert b"Written to the memory: no mail" in admin.get("/settings/members/").content
    row = Invitation.objects.get()
    revoke = reverse("revoke_invitation", args=[row.pk])
    assert "The invitation is revoked" in admin.post(revoke, follow=True).content.decode()
    path = urlsplit(answer.context["link"]).path
    assert Client().get(path).status_code == 404
    # Of a page that is out of date; it may have been used, too.
    assert "Nothing revoked" in admin.post(revoke, follow=True).content.decode()


def test_only_the_hash_of_an_invitation_is_kept(admin: Client) -> None:
    link = admin.post("/settings/members/", {"role": "viewer"}, follow=True).context["link"]
    token = link.rstrip("/").rpartition("/")[2]
    row = Invitation.objects.get()
    assert token.encode() not in bytes(row.token_hash)


@pytest.mark.parametrize("change", ["remove_member", "change_member"])
def test_links_of_an_administrator_who_goes_open_nothing(
    admin: Client, project: Project, change: str
) -> None:
    bob = join(make_person("bob"), project, "admin")
    links = [
        client.post("/settings/members/", {"role": "admin"}, follow=True).context["link"]
        for client in (signed_in("bob"), admin)
    ]
    admin.post(reverse(change, args=[bob.pk]), {"role": "viewer"})
    paths = [urlsplit(link).path for link in links]
    assert [Client().get(path).status_code for path in paths] == [404, 200]


def test_an_invitation_of_who_may_no_longer_invite_is_closed(
    admin: Client, project: Project
) -> None:
    bob = join(make_person("bob"), project, "admin")
    link = signed_in("bob").post("/settings/members/", {"role": "admin"}, follow=True)
    path = urlsplit(link.context["link"]).path
    User.objects.filter(pk=bob.user_id).update(is_active=False)
    make_person("eve")
    assert signed_in("eve").post(path).status_code == 404
    assert not Membership.objects.filter(user__username="eve").exists()
    assert not admin.get("/settings/members/").context["invitations"]


def test_the_last_administrator_stays(admin: Client, project: Project) -> None:
    mine = Membership.objects.get(project=project)
    admin.post(reverse("remove_member", args=[mine.pk]))
    admin.post(reverse("change_member", args=[mine.pk]), {"role": "viewer"})
    mine.refresh_from_db()
    assert mine.role == "admin"
    with pytest.raises(LastAdminError):
        remove(mine, mine.user)
    with pytest.raises(LastAdminError):
        change_role(mine, "viewer", mine.user)


def test_roles_change_and_members_go(admin: Client, project: Project) -> None:
    other = join(make_person("bob"), project, "viewer")
    admin.post(reverse("change_member", args=[other.pk]), {"role": "operator"})
    other.refresh_from_db()
    assert other.role == "operator"
    admin.post(reverse("remove_member", args=[other.pk]))
    assert not Membership.objects.filter(pk=other.pk).exists()
    assert noted() == ["member.changed", "member.removed"]


def test_projects_are_made_renamed_and_opened(admin: Client, project: Project) -> None:
    admin.post("/settings/projects/", {"do": "create", "create-name": "Second one"})
    made = Project.objects.get(slug="second-one")
    assert admin.session["project"] == "second-one"
    assert Membership.objects.get(project=made).role == "admin"
    admin.post("/settings/projects/", {"do": "rename", "rename-name": "Renamed"})
    made.refresh_from_db()
    assert (made.name, made.slug) == ("Renamed", "second-one")


def fields_of_page(client: Client, path: str) -> dict[str, str]:
    """Return the hidden fields of the last form of a page."""
    html = client.get(path).content.decode()
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', html))


def test_a_form_changes_the_project_of_its_page_whatever_another_tab_has_opened(
    admin: Client, project: Project
) -> None:
    fields = fields_of_page(admin, "/settings/projects/")
    admin.post("/settings/projects/", {"do": "create", "create-name": "Other"})
    admin.post("/settings/projects/", {**fields, "do": "rename", "rename-name": "Renamed"})
    assert list(Project.objects.order_by("pk").values_list("name", flat=True)) == [
        "Renamed",
        "Other",
    ]
    assert admin.session["project"] == project.slug


def test_a_button_acts_on_the_project_of_its_page(admin: Client, project: Project) -> None:
    admin.post("/settings/members/", {"role": "viewer"})
    fields = fields_of_page(admin, "/settings/members/")
    admin.post("/settings/projects/", {"do": "create", "create-name": "Other"})
    admin.post(reverse("revoke_invitation", args=[Invitation.objects.get().pk]), fields)
    assert Invitation.objects.get().revoked_at is not None


def test_a_form_of_a_project_that_one_has_left_changes_no_other(
    admin: Client, project: Project
) -> None:
    fields = fields_of_page(admin, "/settings/projects/")
    admin.post("/settings/projects/", {"do": "create", "create-name": "Other"})
    Membership.objects.filter(project=project).delete()
    renamed = {**fields, "do": "rename", "rename-name": "Renamed"}
    assert admin.post("/settings/projects/", renamed).status_code == 404
    assert Project.objects.filter(name="Other").exists()


def test_a_page_refreshes_itself_with_its_own_project(admin: Client, project: Project) -> None:
    make_model(project, "haiku-of-mine")
    admin.post("/settings/projects/", {"do": "create", "create-name": "Other"})
    headers = {"HX-Request": "true", "X-Project": project.slug}
    assert "haiku-of-mine" in admin.get("/settings/providers/", headers=headers).content.decode()
    assert admin.session["project"] == "other"


def test_quotas_hold_and_empty_ones_are_the_installations(admin: Client, project: Project) -> None:
    admin.post("/settings/quotas/", {"events_per_day": "500"})
    own = Quota.objects.get(project=project)
    assert (own.events_per_day, own.events_per_month) == (500, None)
    assert noted() == ["quota.changed"]


def test_planning_is_stopped_and_resumed(admin: Client, project: Project) -> None:
    admin.post("/settings/planning/", {"do": "stop", "reason": "changing keys"})
    assert PlanningStop.objects.get().project == project
    assert "changing keys" in admin.get("/settings/planning/").content.decode()
    admin.post("/settings/planning/", {"do": "resume"})
    assert not PlanningStop.objects.exists()
    answer = admin.post("/settings/planning/", {"do": "stop", "where": "everywhere"})
    assert answer.status_code == 403


def test_a_purge_wants_its_name_typed(admin: Client) -> None:
    admin.post("/settings/purge/", {"correlation_id": "run-1", "typed": "run-2"})
    assert not PurgeOrder.objects.exists()
    admin.post("/settings/purge/", {"correlation_id": "run-1", "typed": "run-1"})
    assert PurgeOrder.objects.get().correlation_id == "run-1"


def test_a_project_is_deleted_by_its_typed_slug(admin: Client, project: Project) -> None:
    make_goal(project, "run-1")
    sent = {"do": "delete_project", "project-slug": "Mine"}
    assert "This is not the slug" in admin.post("/settings/purge/", sent).content.decode()
    sent["project-slug"] = "mine"
    assert "create another one first" in admin.post("/settings/purge/", sent).content.decode()
    other = Project.objects.create(slug="other", name="Other")
    join(User.objects.get(username="ada"), other)
    assert "cancel them first" in admin.post("/settings/purge/", sent).content.decode()
    Goal.objects.filter(project=project).delete()
    assert noted() == []
    answer = admin.post("/settings/purge/", sent, follow=True)
    assert "Mine is closed" in answer.content.decode()
    assert noted() == ["project.deletion_ordered"] * 2
    assert "Delete Other" in admin.get("/settings/purge/").content.decode()


def test_s26_a_credential_is_a_reference_that_the_installation_gives_to_the_project(
    admin: Client, project: Project, settings: Any
) -> None:
    own = ["env:OUR_API_KEY", "file:/etc/passwd"]
    settings.FAILSOFT_PROJECT_CREDENTIALS = {project.slug: own, "other": ["env:OPENAI_API_KEY"]}
    told = {"name": "p", "adapter": "openai", "enabled": "on"}
    for bad in (
        "sk-" + "x" * 40,
        "env:FAILSOFT_SECRET_KEY",
        "env:DATABASE_URL",
        "env:OPENAI_API_KEY",  # of another project
        "env:THIRD_API_KEY",
        "file:/run/secrets/other",
        "file:/etc/passwd",  # in no folder of secrets
        "file:/run/secrets/../../etc/passwd",
    ):
        admin.post("/settings/providers/new/", {**told, "credential": bad})
    assert not Provider.objects.exists()
    admin.post("/settings/providers/new/", {**told, "credential": "env:OUR_API_KEY"})
    assert Provider.objects.get().credential == "env:OUR_API_KEY"


@pytest.mark.parametrize(
    ("change", "is_taken"),
    [
        ({"base_url": "https://elsewhere.example/v1"}, False),
        ({"adapter": "anthropic"}, False),  # its official address is another one
        ({"name": "q"}, True),
        ({"base_url": "https://b.example", "credential": "env:A_API_KEY"}, False),
        # With a key of the project, or with none, it may go anywhere.
        ({"base_url": "https://b.example", "credential": ""}, True),
        ({"base_url": "https://b.example", "credential": "env:B_API_KEY"}, True),
    ],
)
def test_s26_a_secret_of_the_installation_stays_with_its_endpoint(
    admin: Client, project: Project, settings: Any, change: dict[str, str], is_taken: bool
) -> None:
    settings.FAILSOFT_PROJECT_CREDENTIALS = {project.slug: ["env:B_API_KEY"]}
    told = {"name": "p", "adapter": "openai", "base_url": "https://a.example/v1"}
    told["credential"] = "file:/etc/keys/planner"
    row = Provider.objects.create(project=project, **told)
    admin.post(f"/settings/providers/{row.pk}/", {**told, "enabled": "on", **change})
    row.refresh_from_db()
    kept = {name: getattr(row, name) for name in told}
    assert kept == ({**told, **change} if is_taken else told)


def test_forms_of_models_have_the_labels_of_their_list(admin: Client, project: Project) -> None:
    model = make_model(project)
    page = admin.get(reverse("settings_providers")).text
    form = admin.get(reverse("add_model", args=[model.provider_id])).text
    for label in ("Output mode", "Max output tokens"):
        assert label in page
        assert f">{label}</label>" in form
    for label in ("Capabilities</legend>", "Streaming</label>", "Timeout per attempt (s)</label>"):
        assert label in form
    provider = admin.get(reverse("add_provider")).text
    assert ">API</label>" in provider
    assert ">Base URL" in provider


def test_models_are_added_and_one_is_the_default(admin: Client, project: Project) -> None:
    first = make_model(project)
    path = reverse("add_model", args=[first.provider_id])
    fields = {
        "name": "second",
        "enabled": "on",
        "is_default": "on",
        "output_mode": "text",
        "last_output_mode": "schema",
        "max_output_tokens": "512",
        "temperature": "0.1",
        "attempt_timeout_seconds": "30",
    }
    assert admin.post(path, fields).status_code == 302
    first.refresh_from_db()
    assert not first.is_default
    assert LanguageModel.objects.get(name="second").is_default


def test_a_model_without_a_temperature_is_tested_and_stored_without_one(
    admin: Client, project: Project
) -> None:
    model = make_model(project)
    fields = {"name": "gpt-5", "output_mode": "text", "last_output_mode": "text", "temperature": ""}
    fields |= {"max_output_tokens": "512", "attempt_timeout_seconds": "30"}
    path = reverse("add_model", args=[model.provider_id])
    assert admin.post(path, fields).status_code == 302
    added = LanguageModel.objects.get(name="gpt-5")
    with Wire("openai", [Say("ready")]) as wire:
        Provider.objects.update(adapter="openai", base_url=wire.base_url)
        admin.post(reverse("test_model", args=[added.pk]))
        try_model(added.pk)
        asked = json.loads(wire.bodies[0])
    assert added.temperature is None
    assert "temperature" not in asked
    # What a reasoning model thinks counts, too.
    assert asked["max_tokens"] > 100


def test_a_test_tries_each_output_mode_of_the_settings(admin: Client, project: Project) -> None:
    model = make_model(project)
    model.output_mode, model.supported_output_modes = "json", ["text", "json", "schema"]
    model.save()
    with Wire("openai", [Say("{}"), Say("ready"), Fault(400)]) as wire:
        Provider.objects.update(adapter="openai", base_url=wire.base_url)
        admin.post(reverse("test_model", args=[model.pk]))
        try_model(model.pk)
        asked = [json.loads(body) for body in wire.bodies]
    check = ModelCheck.objects.get()
    assert check.fault == "provider_error"
    assert check.said.startswith("Output mode Schema: the provider answered 400")
    form = admin.get(reverse("change_model", args=[model.provider_id, model.pk]))
    assert "Test now tries each of them." in form.text
    formats = [body.get("response_format", {}).get("type") for body in asked]
    assert formats == ["json_object", None, "json_schema"]
    # OpenAI demands it in this mode.
    assert "JSON" in str(asked[0]["messages"])


@pytest.mark.parametrize(
    ("adapter", "typed", "stored"),
    [
        ("openai", "https://1.1.1.1/v1/chat/completions", "https://1.1.1.1/v1"),
        ("openai", "https://1.1.1.1/v1/", "https://1.1.1.1/v1"),
        ("anthropic", "https://1.1.1.1/v1/messages", "https://1.1.1.1"),
        ("anthropic", "https://1.1.1.1/anthropic/v1/", "https://1.1.1.1/anthropic"),
    ],
)
def test_an_address_is_stored_without_what_its_sdk_appends(
    admin: Client, project: Project, adapter: str, typed: str, stored: str
) -> None:
    admin.post(reverse("add_provider"), {"name": "p", "adapter": adapter, "base_url": typed})
    assert Provider.objects.get(project=project).base_url == stored


def test_an_address_with_a_query_is_refused_with_what_to_enter(
    admin: Client, project: Project
) -> None:
    path = "/openai/deployments/gpt/chat/completions?api-version=2024-10-21"
    fields = {"name": "p", "adapter": "openai", "base_url": f"https://1.1.1.1{path}"}
    page = admin.post(reverse("add_provider"), fields)
    assert "enter https://NAME.openai.azure.com/openai/v1." in page.text
    assert not Provider.objects.filter(project=project).exists()


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        # Doubled after a cut answer it fits no column of an attempt.
        ("max_output_tokens", "2147483647", "less than or equal to 1000000"),
        ("max_output_tokens", "0", "greater than or equal to 1"),
        ("attempt_timeout_seconds", "2147483647", "less than or equal to 3600"),
        ("attempt_timeout_seconds", "0", "greater than or equal to 1"),
        ("temperature", "2.1", "less than or equal to 2"),
    ],
)
def test_an_absurd_number_of_a_model_is_refused_at_its_box(
    admin: Client, project: Project, field: str, value: str, says: str
) -> None:
    model = make_model(project)
    fields = {"name": "m", "output_mode": "text", "last_output_mode": "text", "temperature": "0"}
    fields |= {"max_output_tokens": "512", "attempt_timeout_seconds": "30", field: value}
    page = admin.post(reverse("add_model", args=[model.provider_id]), fields)
    assert says in page.text
    assert LanguageModel.objects.count() == 1


def test_a_test_says_which_kind_of_fault_it_was(admin: Client, project: Project) -> None:
    model = make_model(project)
    Provider.objects.update(adapter="openai", base_url="http://127.0.0.1:9/v1")
    admin.post(reverse("test_model", args=[model.pk]))
    assert "asking" in admin.get("/settings/providers/").content.decode()
    try_model(model.pk)
    check = ModelCheck.objects.get()
    assert (check.status, check.fault) == ("done", "provider_error")
    assert "provider error" in admin.get("/settings/providers/").content.decode()


def test_a_test_that_no_worker_took_up_does_not_wait_for_ever(
    admin: Client, project: Project
) -> None:
    model = make_model(project)
    admin.post(reverse("test_model", args=[model.pk]))
    ModelCheck.objects.update(asked_at=clock.now() - timedelta(minutes=3))
    page = admin.get("/settings/providers/")
    assert "not run within 2 min" in page.text
    assert not page.context["waiting"]


def test_a_scripted_provider_is_added_with_its_file_and_answers(
    admin: Client, project: Project, tmp_path: Path
) -> None:
    script = tmp_path / "replies.jsonl"
    script.write_text('{"text": "hi"}\n', encoding="utf-8")
    fields = {"name": "p", "adapter": "scripted", "base_url": f"file:{script}", "enabled": "on"}
    admin.post(reverse("add_provider"), fields)
    provider = Provider.objects.get(project=project)
    model = LanguageModel.objects.create(project=project, provider=provider, name="m")
    admin.post(reverse("test_model", args=[model.pk]))
    try_model(model.pk)
    assert ModelCheck.objects.get().fault == ""


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:6379", "http://[::1]/", "http://10.0.0.7/v1"]
)
def test_only_who_runs_the_installation_leads_calls_to_private_addresses(
    admin: Client, project: Project, settings: Any, address: str
) -> None:
    fields = {"name": "p", "adapter": "openai", "base_url": address}
    page = admin.post("/settings/providers/new/", fields)
    assert "is not a public address" in page.text
    assert not Provider.objects.exists()
    admin.post("/settings/providers/new/", {**fields, "base_url": "http://8.8.8.8/", "name": "r"})
    # Its calls look again, for what a name leads to may change.
    assert not Provider.objects.get().allows_private
    Provider.objects.all().delete()
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = True
    admin.post("/settings/providers/new/", fields)
    settings.FAILSOFT_HTTP_ALLOW_PRIVATE = False
    User.objects.update(is_superuser=True)
    admin.post("/settings/providers/new/", {**fields, "name": "q"})
    assert Provider.objects.count() == 2


def test_a_test_mail_goes_to_oneself(admin: Client) -> None:
    admin.post("/settings/mail/")
    (letter,) = mail.outbox
    assert letter.to == ["ada@example.org"]


def test_the_audit_log_is_filtered_paged_and_exported(admin: Client, project: Project) -> None:
    for number in range(60):
        admin.post("/settings/planning/", {"do": ["stop", "resume"][number % 2]})
    page = admin.get("/settings/audit/")
    assert len(page.context["lines"]) == 50
    assert page.context["check"][0] == "good"
    assert admin.get("/settings/audit/?before=\N{SUPERSCRIPT TWO}").status_code == 200
    assert admin.get("/settings/audit/?actor=%00").status_code == 200
    rest = admin.get(f"/settings/audit/?before={page.context['older']}")
    assert len(rest.context["lines"]) == 10
    only = admin.get("/settings/audit/?action=planning.stopped")
    assert len(only.context["lines"]) == 30
    lines = admin.get("/settings/audit/export/?format=csv").getvalue().decode()
    assert lines.count("planning.resumed") == 30


def test_the_installations_log_is_for_those_who_run_it(admin: Client) -> None:
    page = admin.get("/settings/audit/?of=installation").content.decode()
    assert "sign_in.succeeded" not in page


def steps_done(admin: Client) -> list[bool]:
    return [step.is_done for step in admin.get("/setup/").context["steps"]]


def send(admin: Client, key: str, **changes: object) -> None:
    event = wire_event(occurred_at=clock.now().isoformat(), **changes)
    sent = admin.post(
        "/api/v1/events",
        json.dumps([event]),
        content_type="application/json",
        headers={"Authorization": f"Bearer {key}"},
    )
    assert sent.status_code < 300, sent.content


def test_first_steps_tick_themselves_off(admin: Client, project: Project) -> None:
    assert steps_done(admin) == [True, False, False, False]
    answer = admin.post("/setup/", follow=True)
    assert answer.headers["Cache-Control"] == "no-store"
    key = answer.context["key"]
    assert answer.content.decode().count(key) >= 9
    assert steps_done(admin) == [True, True, False, False]
    admin.post("/ingest/test/")
    assert steps_done(admin) == [True, True, False, False]
    send(admin, key)
    assert steps_done(admin) == [True] * 4
    page = admin.get("/setup/").content.decode()
    assert "Setup complete" in page
    assert 'href="/runs/run-8842/"' in page
    assert "Not JSON" in page


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"unchecked": "no_schema"}, "unchecked"),
        ({"name": "graph.next_step.provider_error", "parse_error_type": None}, "Provider error"),
    ],
)
def test_only_a_checked_answer_completes_the_steps(
    admin: Client, project: Project, changes: dict[str, object], says: str
) -> None:
    key = issue_key(project, "agent", [Scope.INGEST]).text
    nothing = dict.fromkeys(("parse_error_type", "validation_errors", "raw_output_preview"))
    send(admin, key, **{"name": "graph.next_step.succeeded", **nothing, **changes})
    assert steps_done(admin) == [True, True, True, False]
    assert says in admin.get("/setup/").content.decode()


def test_the_planners_own_goal_and_the_key_of_the_machine_tick_no_step(
    admin: Client, project: Project
) -> None:
    issued = issue_key(project, LOCAL_KEY_NAME, list(Scope))
    record(project.pk, [make_event(source="planner")])
    assert steps_done(admin) == [True, False, False, False]
    send(admin, issued.text)
    assert steps_done(admin) == [True, True, True, True]


def test_an_event_of_long_ago_still_ticks_its_step(admin: Client, project: Project) -> None:
    issue_key(project, "agent", [Scope.INGEST])
    steps = admin.get("/setup/").context["steps"]
    assert not steps[2].is_done
    ApiKey.objects.update(last_used_at=clock.now() - timedelta(days=40))
    steps = admin.get("/setup/").context["steps"]
    assert steps[2].is_done


def test_demo_data_ticks_no_step(admin: Client, project: Project) -> None:
    load(project, clock.now(), volume=0.01)
    fold()
    steps = admin.get("/setup/").context["steps"]
    assert [step.is_done for step in steps] == [True, False, False, False]


def test_each_step_leads_to_where_it_is_done(admin: Client) -> None:
    page = admin.get("/setup/").content.decode()
    for target in ("#key", "#send"):
        assert f'href="{target}"' in page
        assert f'id="{target[1:]}"' in page


def test_s24_changes_of_models_tools_and_breakers_are_noted(
    admin: Client, project: Project
) -> None:
    model = make_model(project)
    admin.post("/tools/allow/", {"tool": "http_get", "allowed": "no"})
    admin.post("/fix-patterns/policy/", {"mode": "off"})
    told = {"language_model": model.pk, "operation": "plan", "reason": "looks ill"}
    admin.post("/breakers/isolate/", told)
    assert noted() == ["tool.denied", "fix_patterns.policy", "breaker.isolated"]


@pytest.mark.parametrize("name", [name for name in PAGES if name != "add_provider"])
def test_pages_ask_a_constant_number_of_queries(
    admin: Client, project: Project, name: str, django_assert_max_num_queries: Any
) -> None:
    for number in range(12):
        join(make_person(f"person-{number}"), project, "viewer")
        issue_key(project, f"key {number}", [Scope.READ])
        make_model(project, f"model-{number}")
    with django_assert_max_num_queries(20):
        assert admin.get(reverse(name)).status_code == 200
