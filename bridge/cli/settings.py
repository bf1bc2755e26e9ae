"""The commands `config`, which shows the settings, and `keys`, which makes clients' keys. Neither needs Letta."""

from __future__ import annotations

import hashlib
import re
import secrets
import sys

import click

from bridge.cli.service import Service
from bridge.cli.showing import as_json, report_failures, show_json, show_rows
from bridge.operation.masked import mask_settings


def add_settings(group: click.Group, service: Service) -> None:
    _add_config_command(group, service)
    _add_keys_commands(group, service)


def _add_config_command(group: click.Group, service: Service) -> None:
    @group.command("config", help="The settings that are in force, without secrets.")
    @click.option("--changed", is_flag=True, help="Only settings that are not the default.")
    @as_json
    @report_failures
    def config(changed: bool, as_json: bool) -> None:
        for sentence in service.settings.ignored_variables:
            click.echo(f"Warning: {sentence}", err=True)
        shown = [one for one in mask_settings(service.settings) if one.changed or not changed]
        rows = [
            {"variable": one.variable, "value": one.value or None, "default": "no" if one.changed else "yes"}
            for one in shown
        ]
        show_rows(rows, as_json, "All settings have their defaults.")


def _add_keys_commands(group: click.Group, service: Service) -> None:
    @group.group("keys", help="Keys for clients. They are kept as hashes, so the key itself is shown once only.")
    def keys() -> None:
        """Does nothing itself: click runs it before each subcommand."""

    @keys.command("new", help="Make a key, and the entry for BRIDGE_API_KEYS.")
    @click.argument("name", default="client", callback=_check_key_name)
    @as_json
    def new(name: str, as_json: bool) -> None:
        key = f"ltb-{secrets.token_urlsafe(32)}"
        entry = _key_entry(name, key)
        if as_json:
            show_json({"name": name, "key": key, "entry": entry})
        else:
            click.echo(f"For the client, as its API key. It is not shown again:\n  {key}")
            click.echo(
                "For the bridge, in the variable BRIDGE_API_KEYS, with commas between the entries of several keys:"
            )
            click.echo(f"  {entry}")

    @keys.command("hash", help="The entry for BRIDGE_API_KEYS of a key that you have. Asks for the key.")
    @click.argument("name", default="client", callback=_check_key_name)
    def hash_key(name: str) -> None:
        asks = sys.stdin.isatty()
        key = click.prompt("Key", hide_input=True, err=True) if asks else sys.stdin.readline()
        if len(key.strip()) < 8:
            raise click.ClickException("A key has at least 8 characters.")
        click.echo(_key_entry(name, key.strip()))

    @keys.command("list", help="The names of the keys in BRIDGE_API_KEYS.")
    @as_json
    @report_failures
    def list_keys(as_json: bool) -> None:
        rows = [{"name": key.name, "sha256": f"{key.sha256[:8]}…"} for key in service.settings.api_keys]
        show_rows(rows, as_json, "There are no keys: BRIDGE_API_KEYS is not set.")


def _check_key_name(context: click.Context, parameter: click.Parameter, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        raise click.BadParameter("a name has 1 to 64 letters, digits, dots, dashes and underscores")
    return name


def _key_entry(name: str, key: str) -> str:
    return f"{name}:{hashlib.sha256(key.encode()).hexdigest()}"
