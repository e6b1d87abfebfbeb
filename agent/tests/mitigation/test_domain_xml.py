"""XML as libvirt gives it: cells of the pool bound to local nodes, and not a byte else."""

import pytest

from pondstack.domain.errors import BadRequest
from pondstack_agent.mitigation.domain_xml import bind_local

XML = """<domain type='kvm' id='3'>
  <metadata>
    <nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1">
      <nova:name>&lt;memnode cellid='1' nodeset='1'/></nova:name><memnode cellid='1' nodeset='1'/>
    </nova:instance>
  </metadata>
  <numatune>
    <memnode cellid='0' mode='strict' nodeset='0'/>
    <memnode cellid='1' mode='preferred' nodeset='1'/>
  </numatune>
  <name>ä</name>
</domain>
"""


def test_the_pools_cell_only() -> None:
    expected = XML.replace("cellid='1' mode='preferred' nodeset='1'", "cellid='1' mode='strict' nodeset='0'")
    assert bind_local(XML, {0}) == expected
    assert bind_local(expected, {0}) == expected


def test_several_cells_and_nodes_in_any_notation() -> None:
    xml = '<domain><numatune><memnode nodeset = "2-3" cellid="1" mode="preferred"></memnode><memnode cellid="2" mode="preferred" nodeset="3"/></numatune></domain>'  # noqa: E501
    assert bind_local(xml, {0, 1}) == xml.replace("2-3", "0,1").replace('"3"', '"0,1"').replace("preferred", "strict")


def test_nothing_to_bind() -> None:
    assert bind_local("<domain/>", {0}) == "<domain/>"
    assert bind_local(XML, {0, 1}) == XML


def test_what_cannot_be_read() -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        bind_local("<domain><numatune>", {0})
    with pytest.raises(ValueError, match="no local nodes"):
        bind_local(XML, ())
