"""Tests of free ports when several processes ask for them at once."""

import socket
import subprocess
import sys

import pytest

from testbed.cache import REPOSITORY
from testbed.network import free_port


def port_of_another_process(preferred: int) -> int:
    program = f"from testbed.network import free_port; print(free_port({preferred}))"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.servers
def test_a_port_is_given_to_one_process_only_even_before_a_server_listens() -> None:
    port = free_port()
    assert port_of_another_process(port) != port
    assert free_port(port) == port


@pytest.mark.servers
def test_the_port_of_an_ended_process_is_free_again() -> None:
    port = port_of_another_process(free_port())
    assert port_of_another_process(port) == port


def test_a_port_is_given_once_unless_it_is_preferred() -> None:
    ports = [free_port() for _ in range(300)]
    assert len(set(ports)) == 300


def test_a_port_with_a_listening_server_is_not_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        taken = listening.getsockname()[1]
        assert free_port(taken) != taken
