"""The sign-in form."""

from typing import Any

from allauth.account.forms import LoginForm


class SignInForm(LoginForm):  # type: ignore[misc]  # untyped base
    """Allauth's form; its first field takes a username or an email address."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = "Username or email"
        self.fields["login"].widget.attrs.pop("placeholder", None)

    def user_credentials(self) -> dict[str, str]:
        """Return the login once: as name and address, a known address took two checks."""
        return {"username": self.cleaned_data["login"], "password": self.cleaned_data["password"]}
