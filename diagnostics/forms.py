"""Forms of the console pages in this app."""

from django import forms
from django.contrib.auth.models import User


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]  # plain at run time
    """What a person may change about themselves here."""

    class Meta:
        model = User
        fields = ["first_name", "last_name", "email"]
