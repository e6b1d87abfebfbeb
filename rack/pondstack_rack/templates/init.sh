#!/bin/busybox sh
# The guest of the rack: tells its NUMA nodes on the console, then beats and checks a buffer in pool memory for ever.
# Each line is `POND {json}`. The buffer is a tmpfs bound to the last node, so its pages are pool pages; the expected
# sums are shell variables, in local memory. A live migration that loses a write shows as an error in the next beats.
# A guest with a swap disk swaps to it, and has some of the buffer swapped out with each beat.
PATH=/bin
/bin/busybox mkdir -p /bin /proc /sys /dev /pool
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev 2>/dev/null
# Nova's own command line names hvc0 last: then that is /dev/console, which a guest without such a device cannot open.
console=/dev/console
grep -q console=ttyS0 /proc/cmdline && console=/dev/ttyS0
exec >$console 2>&1 <$console
echo 1 >/proc/sys/kernel/printk

nodes=/sys/devices/system/node
last=0
echo
for path in $(ls -d $nodes/node[0-9]* | sort -V); do
    node=${path##*/node}
    last=$node
    kib=$(sed -n 's/.*MemTotal: *\([0-9]*\) kB/\1/p' $path/meminfo)
    distance=$(sed 's/^ *//; s/ *$//; s/  */,/g' $path/distance)
    echo "POND {\"kind\": \"node\", \"node\": $node, \"cpulist\": \"$(cat $path/cpulist)\", \"memtotal_kib\": $kib, \"distance\": [$distance]}"
done
echo "POND {\"kind\": \"memory\", \"total_kib\": $(sed -n 's/MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo), \"cpus\": $(nproc)}"

# Drivers of disks take a guest's time to load: only one that has another disk than its root disk needs them.
swaps=
if [ "$(cat /sys/bus/pci/devices/*/device | grep -c -e 0x1001 -e 0x1042)" -gt 1 ]; then
    for driver in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
        insmod /$driver.ko
    done
    for disk in /sys/block/vd*; do
        [ "$(cat $disk/serial)" = pond-swap ] || continue
        swaps=${disk##*/}
        mkswap /dev/$swaps >/dev/null && swapon /dev/$swaps
        echo "POND {\"kind\": \"swap\", \"serial\": \"pond-swap\", \"size_kib\": $(($(cat $disk/size) / 2))}"
        mkdir /cgroup
        mount -t cgroup2 cgroup /cgroup
        echo +memory >/cgroup/cgroup.subtree_control
        mkdir /cgroup/beats
        echo $$ >/cgroup/beats/cgroup.procs     # what is touched from here on
    done
fi

# A small guest without a swap disk has 80 MiB more that it hardly touches: what leaves, and stays away.
cold=
if [ -z "$swaps" ] && [ "$(sed -n 's/MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -lt 400000 ]; then
    head -c 83886080 /dev/urandom >/cold
    cold=$(md5sum </cold)
fi

SLOTS=16
mount -t tmpfs -o size=32m,mpol=bind:$last pool /pool
pattern() { yes "pond $1 $(cat /proc/sys/kernel/random/boot_id)" | head -c 1048576; }
errors=0 count=0 checked=0
while true; do
    slot=$((count % SLOTS))
    if [ $count -ge $SLOTS ]; then       # the oldest slot, written SLOTS beats ago, before it is written again
        eval expected=\$sum_$slot
        sum=$(md5sum </pool/$slot)
        checked=$((checked + 1))
        [ "$sum" = "$expected" ] || errors=$((errors + 1))
    fi
    if [ "$cold" ] && [ $((count % 64)) -eq 63 ]; then
        [ "$(md5sum </cold)" = "$cold" ] || errors=$((errors + 1))
    fi
    pattern $count >/pool/$slot
    eval sum_$slot='$(pattern $count | md5sum)'
    swapped=
    if [ "$swaps" ]; then
        echo 8M >/cgroup/beats/memory.reclaim 2>/dev/null
        swapped=", \"swapped_kib\": $(awk 'NR == 2 {print $4}' /proc/swaps)"
    fi
    pool_kib=$(sed -n 's/.*Shmem: *\([0-9]*\) kB/\1/p' $nodes/node$last/meminfo)
    echo "POND {\"kind\": \"beat\", \"count\": $count, \"checked\": $checked, \"errors\": $errors, \"pool_node\": $last, \"pool_buffer_kib\": $pool_kib$swapped}"
    count=$((count + 1))
    # Who waits for beats does so early: tests and demonstrations. Later on it leaves the machine to others.
    [ $count -lt 300 ] && sleep 0.5 || sleep 2
done
