"""What the kernel keeps of a node for itself."""

from pondstack_agent.host.watermarks import kept_pages

ZONEINFO = """\
Node 0, zone   Normal
  per-node stats
      nr_inactive_anon 4711
  pages free     772792
        boost    0
        min      2576
        low      3348
        high     4120
        promo    4892
        protection: (0, 3019)
  pagesets
    cpu: 0
              count:    371
              high:     378
              batch:    63
              high_min: 378
              high_max: 6037
  vm stats threshold: 4
Node 2, zone   Normal
  pages free     0
        min      32
        high     32
Node 2, zone  Movable
  pages free     98304
        min      96
        high     286
  pagesets
    cpu: 0
              high:     14
    cpu: 1
              high:     14
Node 22, zone  Movable
        high     1000
"""


def test_up_to_the_high_watermark_and_the_lists_of_each_cpu() -> None:
    assert kept_pages(ZONEINFO, 2) == 32 + 286 + 14 + 14
    assert kept_pages(ZONEINFO, 0) == 4120 + 378


def test_a_node_without_memory_keeps_nothing() -> None:
    assert kept_pages(ZONEINFO, 7) == 0
