"""From pyVmomi's answers to plain changes: values, withheld values, rules. Built without a server."""

from typing import Any

import pytest
from pyVmomi import vim, vmodl

from underhost.schemas.vsphere import Admission, DrsRule
from underhost.streams.vsphere.changes import ClusterState, ObjectChange, Page
from underhost.streams.vsphere.client import SessionLost
from underhost.streams.vsphere.collector import cluster_of, page_of
from underhost.streams.vsphere.rules import info_of, rule_of

PC = vmodl.query.PropertyCollector


def an_update(obj: Any, kind: str, missing: dict[str, Any] | None = None, **values: Any) -> Any:
    return PC.ObjectUpdate(
        kind=kind,
        obj=obj,
        changeSet=[PC.Change(name=name.replace("_", "."), op="assign", val=value) for name, value in values.items()],
        missingSet=[PC.MissingProperty(path=path, fault=fault) for path, fault in (missing or {}).items()],
    )


def an_update_set(*updates: Any, truncated: bool | None = None) -> Any:
    return PC.UpdateSet(version="7", truncated=truncated, filterSet=[PC.FilterUpdate(objectSet=list(updates))])


VM, HOST = vim.VirtualMachine("vm-1"), vim.HostSystem("host-1")


def test_references_become_morefs_enums_text_and_custom_attributes_a_mapping() -> None:
    page = page_of(
        an_update_set(
            an_update(
                VM,
                "enter",
                name="n1",
                runtime_host=HOST,
                runtime_powerState=vim.VirtualMachine.PowerState.poweredOn,
                config_template=False,
                guest_hostName=None,
            ),
            an_update(
                HOST,
                "modify",
                parent=vim.ClusterComputeResource("domain-1"),
                customValue=vim.CustomFieldsManager.Value.Array(
                    [vim.CustomFieldsManager.StringValue(key=101, value="r7")]
                ),
            ),
            an_update(VM, "leave"),
            truncated=True,
        )
    )
    assert page == Page(
        "7",
        True,
        (
            ObjectChange(
                "enter",
                "vm",
                "vm-1",
                {
                    "name": "n1",
                    "runtime.host": "host-1",
                    "runtime.powerState": "poweredOn",
                    "config.template": False,
                    "guest.hostName": None,
                },
            ),
            ObjectChange("modify", "host", "host-1", {"parent": "domain-1", "customValue": {101: "r7"}}),
            ObjectChange("leave", "vm", "vm-1", {}),
        ),
    )


def test_an_update_that_says_nothing_of_truncation_is_whole() -> None:
    assert page_of(an_update_set(truncated=None)) == Page("7", False, ())


def test_what_we_may_not_read_is_named_with_its_fault() -> None:
    page = page_of(an_update_set(an_update(VM, "modify", {"config.uuid": vim.fault.NoPermission()}, name="n1")))
    assert page.changes == (ObjectChange("modify", "vm", "vm-1", {"name": "n1"}, {"config.uuid": "NoPermission"}),)


def test_values_withheld_without_a_login_mean_a_lost_session_and_no_empty_objects() -> None:
    withheld = {path: vim.fault.NotAuthenticated() for path in ("name", "runtime.host")}
    with pytest.raises(SessionLost, match="the session has ended"):
        page_of(an_update_set(an_update(VM, "enter", withheld)))


def test_objects_of_other_types_are_left_out() -> None:
    assert page_of(an_update_set(an_update(vim.Folder("group-1"), "enter", name="vm"))).changes == ()


def test_a_cluster_tells_its_flags_and_rules_and_an_absent_flag_is_off() -> None:
    configuration = vim.cluster.ConfigInfoEx(
        drsConfig=vim.cluster.DrsConfigInfo(enabled=True),
        dasConfig=vim.cluster.DasConfigInfo(enabled=None),
        rule=[vim.cluster.AntiAffinityRuleSpec(name="a", key=3, enabled=None, mandatory=True, vm=[VM])],
    )
    assert cluster_of("domain-1", "C0", configuration) == ClusterState(
        "domain-1",
        "C0",
        drs=True,
        ha=False,
        rules=(DrsRule("a", "anti-affinity", ["vm-1"], enabled=False, mandatory=True, cluster="C0", key=3),),
    )


def test_a_cluster_whose_configuration_is_withheld_has_unknown_rules_and_not_none() -> None:
    assert cluster_of("domain-1", "C0", None).rules is None


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        pytest.param(vim.cluster.AntiAffinityRuleSpec(name="r"), "anti-affinity", id="VM-VM apart"),
        pytest.param(vim.cluster.AffinityRuleSpec(name="r"), "affinity", id="VM-VM together"),
        pytest.param(vim.cluster.VmHostRuleInfo(name="r"), "vm-host", id="VM-Host"),
        pytest.param(vim.cluster.DependencyRuleInfo(name="r"), "other", id="VM dependency"),
        pytest.param(vim.cluster.RuleInfo(name="r"), "other", id="a rule of no kind we know"),
    ],
)
def test_only_vm_vm_rules_have_a_type_that_is_ours_to_write(info: Any, kind: str) -> None:
    assert rule_of("C0", info) == DrsRule("r", kind, enabled=False, cluster="C0")


@pytest.mark.parametrize(
    ("side", "hosts"),
    [
        pytest.param("affineHostGroupName", ["host-1", "host-2"], id="on these hosts"),
        pytest.param("antiAffineHostGroupName", ["host-3"], id="on all but these hosts"),
    ],
)
def test_a_vm_host_rule_names_the_hosts_that_its_vms_may_run_on(side: str, hosts: list[str]) -> None:
    groups = [
        vim.cluster.VmGroup(name="licensed", vm=[vim.VirtualMachine("vm-2"), vim.VirtualMachine("vm-1")]),
        vim.cluster.HostGroup(name="racks", host=[vim.HostSystem("host-2"), vim.HostSystem("host-1")]),
    ]
    info = vim.cluster.VmHostRuleInfo(name="r", enabled=True, mandatory=True, vmGroupName="licensed", **{side: "racks"})
    found = rule_of("C0", info, groups, ["host-1", "host-2", "host-3"])
    assert found == DrsRule("r", "vm-host", ["vm-1", "vm-2"], hosts, mandatory=True, cluster="C0")


def test_what_drs_may_do_by_itself_is_read_of_a_cluster_and_of_its_vms() -> None:
    drs = vim.cluster.DrsConfigInfo(enabled=True, defaultVmBehavior="partiallyAutomated")
    vms = [
        vim.cluster.DrsVmConfigInfo(key=vim.VirtualMachine("vm-1"), behavior="manual"),
        vim.cluster.DrsVmConfigInfo(key=vim.VirtualMachine("vm-2"), enabled=False),
        vim.cluster.DrsVmConfigInfo(key=vim.VirtualMachine("vm-3")),
    ]
    found = cluster_of("domain-1", "C0", vim.cluster.ConfigInfoEx(drsConfig=drs, drsVmConfig=vms))
    assert found.automation == "partiallyAutomated"
    assert found.overrides == {"vm-1": "manual", "vm-2": "disabled"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param(vim.cluster.FailoverLevelAdmissionControlPolicy(failoverLevel=2), Admission(hosts=2), id="hosts"),
        pytest.param(
            vim.cluster.FailoverResourcesAdmissionControlPolicy(
                memoryFailoverResourcesPercent=25, cpuFailoverResourcesPercent=20
            ),
            Admission(memory_percent=25, cpu_percent=20),
            id="shares",
        ),
        pytest.param(
            vim.cluster.FailoverHostAdmissionControlPolicy(
                failoverHosts=[vim.HostSystem("host-9"), vim.HostSystem("host-2")]
            ),
            Admission(failover_hosts=["host-2", "host-9"]),
            id="failover hosts",
        ),
        pytest.param(None, None, id="no policy"),
    ],
)
def test_what_admission_control_keeps_free_is_read_of_a_cluster(policy: Any, expected: Admission | None) -> None:
    def read(**ha: bool) -> Admission | None:
        das = vim.cluster.DasConfigInfo(admissionControlPolicy=policy, **ha)
        return cluster_of("domain-1", "C0", vim.cluster.ConfigInfoEx(dasConfig=das)).admission

    assert read(enabled=True, admissionControlEnabled=True) == expected
    assert read(enabled=True, admissionControlEnabled=False) is None
    assert read(enabled=False, admissionControlEnabled=True) is None


def test_a_rule_is_written_in_force_and_for_people_to_see() -> None:
    info = info_of(DrsRule("r", "anti-affinity", ["vm-1", "vm-2"], mandatory=False))
    assert type(info) is vim.cluster.AntiAffinityRuleSpec
    assert (info.name, info.enabled, info.mandatory, info.userCreated, info.key) == ("r", True, False, True, None)
    assert [vm._GetMoId() for vm in info.vm] == ["vm-1", "vm-2"]


def test_a_rule_of_another_type_cannot_be_written() -> None:
    with pytest.raises(ValueError, match="of type other"):
        info_of(DrsRule("r", "other"))
