"""The files for containers and clusters: they fit together, and to the server, and allow what they must and no more."""

import re
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from django.urls import resolve

from console.site import probes
from storage.server import configuration, options
from tests.docs.pages import DOCS, blocks
from tests.live_server import ROOT
from tests.service import container
from tests.service.conftest import SERVICE

COMPOSE = SERVICE / "compose.yaml"
KUBERNETES = SERVICE / "kubernetes"
VARIANTS = ("embedded", "external")
PORT = "10002"


@pytest.fixture(scope="module")
def image():
    """Return the instructions of the last stage of the Containerfile, by name."""
    text = container.CONTAINERFILE.read_text()
    return dict(container.read(text[text.rindex("\nFROM") :]))


def test_all_settings_are_options():
    results = {
        (path.name, name)
        for path in SERVICE.rglob("*")
        if path.is_file()
        for name in re.findall(r"\bTABLERO_[A-Z_]+\b", path.read_text())
    }
    assert {name for _, name in results} >= {"TABLERO_CONFIG", "TABLERO_DATA", "TABLERO_LISTEN"}
    assert [it for it in results if it[1] not in options.KEYS] == []


def test_the_settings_of_the_page_are_read(tmp_path):
    [*files] = blocks(DOCS / "service.md", "toml")
    assert files
    for text in files:
        (tmp_path / "tablero.toml").write_text(text)
        environment = {configuration.FILE: str(tmp_path / "tablero.toml")}
        configuration.apply(environment, dict(environment))
        options.read({name: value for name, value in environment.items() if name.startswith(options.PREFIX)})
    configuration.origins.clear()


def listening_port(image: dict[str, str]) -> str:
    return re.search(r"TABLERO_LISTEN=0\.0\.0\.0:(\d+)", image["ENV"])[1]


def test_the_image_listens_where_it_says_and_is_asked(image):
    assert listening_port(image) == image["EXPOSE"] == PORT
    assert f"'127.0.0.1', {PORT}" in image["HEALTHCHECK"] and "'/ui/readyz'" in image["HEALTHCHECK"]
    assert re.search(r"TABLERO_DATA=(\S+)", image["ENV"])[1].startswith(f"{image['VOLUME']}/")
    assert image["USER"].split(":")[0] not in {"0", "root"}


# compose


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load(COMPOSE.read_text())


def test_compose_waits_for_a_healthy_database(compose):
    services = compose["services"]
    assert services["tablero"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert services["postgres"]["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]


def test_compose_has_secrets_as_files_and_volumes_for_data(compose, image):
    services = compose["services"]
    for service in services.values():
        for name in service["secrets"]:
            assert compose["secrets"][name]["file"].startswith("./secrets/")
            assert f"/run/secrets/{name}" in service["environment"].values()
        assert not any(re.search("PASSWORD$|SECRET$|_URL$", name) for name in service["environment"])
        volumes = [it.split(":") for it in service["volumes"]]
        assert {name for name, _ in volumes} <= compose["volumes"].keys()
    assert "docs/service/secrets/" in (ROOT / ".gitignore").read_text().splitlines()
    assert services["tablero"]["volumes"] == [f"tablero:{image['VOLUME']}"]


def test_compose_builds_our_image_and_restricts_it(compose, image):
    service = compose["services"]["tablero"]
    assert (
        SERVICE / service["build"]["context"] / service["build"]["dockerfile"]
    ).resolve() == container.CONTAINERFILE
    assert [it.rpartition(":")[2] for it in service["ports"]] == [image["EXPOSE"]]
    assert service["ports"][0].startswith("127.0.0.1:")  # without TLS
    assert service["read_only"] and service["tmpfs"] == ["/tmp"]
    assert service["cap_drop"] == ["ALL"] and service["security_opt"] == ["no-new-privileges:true"]


def test_docker_reads_the_compose_file(require):
    docker = require("docker", "the compose file")
    if subprocess.run([docker, "compose", "version"], capture_output=True).returncode:
        pytest.skip("docker compose is not installed")
    subprocess.run([docker, "compose", "--file", COMPOSE, "config", "--quiet"], check=True)


# Kubernetes


def resources(variant: str) -> list[dict]:
    """Return the resources of a variant, as its kustomization lists them."""
    return list(_resources(KUBERNETES / variant))


def _resources(folder) -> Iterator[dict]:
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            yield from _resources(path)
        else:
            yield from yaml.safe_load_all(path.read_text())


def by_kind(variant: str, kind: str) -> list[dict]:
    return [it for it in resources(variant) if it["kind"] == kind]


def workload(variant: str) -> dict:
    [found] = [it for it in resources(variant) if it["kind"] in {"StatefulSet", "Deployment"}]
    return found


def pod(variant: str) -> dict:
    return workload(variant)["spec"]["template"]["spec"]


def the_container(variant: str) -> dict:
    [found] = pod(variant)["containers"]
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_kubectl_builds_the_same(require, variant):
    kubectl = require("kubectl", "kustomize")
    built = subprocess.run(
        [kubectl, "kustomize", KUBERNETES / variant], capture_output=True, text=True, check=True
    )
    results = {(it["kind"], it["metadata"]["name"]): it for it in yaml.safe_load_all(built.stdout)}
    assert results.keys() == {(it["kind"], it["metadata"]["name"]) for it in resources(variant)}
    assert {it["metadata"].get("namespace") for kind, it in results.items() if kind[0] != "Namespace"} == {
        "tablero"
    }


@pytest.mark.parametrize("variant", VARIANTS)
def test_pods_keep_the_standard_restricted(variant, image):
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    [namespace] = by_kind(variant, "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    of_pod = pod(variant)["securityContext"]
    of_container = the_container(variant)["securityContext"]
    assert of_pod["runAsNonRoot"] is True and of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert of_container["allowPrivilegeEscalation"] is False
    assert of_container["capabilities"] == {"drop": ["ALL"]}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod(variant).keys()
    assert not any("hostPort" in port for port in the_container(variant)["ports"])
    kinds = {next(name for name in volume if name != "name") for volume in pod(variant)["volumes"]}
    assert kinds <= {"configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
    # beyond it: nothing can be written but the volumes, as the user of the image
    assert of_container["readOnlyRootFilesystem"] is True
    assert [f"{of_pod['runAsUser']}:{of_pod['runAsGroup']}"] == [image["USER"]]
    assert pod(variant)["automountServiceAccountToken"] is False
    # PostgreSQL refuses folders that a group may write
    assert of_pod["fsGroupChangePolicy"] == "OnRootMismatch"


@pytest.mark.parametrize("variant", VARIANTS)
def test_probes_ask_a_server_what_it_answers(variant):
    """A database that is away must not have servers started again."""
    result = the_container(variant)
    assert {port["name"]: port["containerPort"] for port in result["ports"]}["http"] == int(PORT)
    for name, view in (("startup", probes.alive), ("liveness", probes.alive), ("readiness", probes.ready)):
        probe = result[f"{name}Probe"]["httpGet"]
        assert probe["port"] == "http"
        assert resolve(probe["path"]).func == view


@pytest.mark.parametrize("variant", VARIANTS)
def test_parts_name_each_other(variant, image):
    result = workload(variant)
    labels = result["spec"]["template"]["metadata"]["labels"]
    ports = {port["name"] for port in the_container(variant)["ports"]}
    assert result["spec"]["selector"]["matchLabels"] == labels
    for service in by_kind(variant, "Service"):
        assert service["spec"]["selector"] == labels
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    for budget in by_kind(variant, "PodDisruptionBudget"):
        assert budget["spec"]["selector"]["matchLabels"] == labels
    [policy] = by_kind(variant, "NetworkPolicy")
    assert policy["spec"]["podSelector"]["matchLabels"] == labels
    assert {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]} <= ports
    claims = {it["metadata"]["name"] for it in result["spec"].get("volumeClaimTemplates", ())}
    volumes = {volume["name"] for volume in pod(variant)["volumes"]} | claims
    mounts = {mount["name"]: mount["mountPath"] for mount in the_container(variant)["volumeMounts"]}
    assert mounts.keys() == volumes
    assert mounts["data"] == image["VOLUME"]
    settings = {it["name"]: it["value"] for it in the_container(variant)["env"]}
    assert settings["TABLERO_CONFIG"].startswith(f"{mounts['config']}/")


def test_one_pod_has_the_embedded_database_and_several_share_another():
    embedded, external = workload("embedded"), workload("external")
    assert (embedded["kind"], embedded["spec"]["replicas"]) == ("StatefulSet", 1)
    assert embedded["spec"]["serviceName"] in {
        it["metadata"]["name"] for it in by_kind("embedded", "Service")
    }
    assert (external["kind"], external["spec"]["replicas"]) == ("Deployment", 3)
    assert {volume["name"]: volume for volume in pod("external")["volumes"]}["data"]["emptyDir"] == {}
    for variant in VARIANTS:
        [budget] = by_kind(variant, "PodDisruptionBudget")
        assert budget["spec"]["maxUnavailable"] == 1
