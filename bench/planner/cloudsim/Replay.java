// The same trace on the same hosts by CloudSim Plus: each VM has one cloudlet, which keeps it busy as long as it lives.
// Prints the CPU seconds of the simulation itself, the VMs that were placed, and those that found no host.

import ch.qos.logback.classic.Level;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.cloudsimplus.allocationpolicies.VmAllocationPolicySimple;
import org.cloudsimplus.brokers.DatacenterBrokerSimple;
import org.cloudsimplus.cloudlets.Cloudlet;
import org.cloudsimplus.cloudlets.CloudletSimple;
import org.cloudsimplus.core.CloudSimPlus;
import org.cloudsimplus.datacenters.DatacenterSimple;
import org.cloudsimplus.hosts.Host;
import org.cloudsimplus.hosts.HostSimple;
import org.cloudsimplus.resources.Pe;
import org.cloudsimplus.resources.PeSimple;
import org.cloudsimplus.util.Log;
import org.cloudsimplus.vms.Vm;
import org.cloudsimplus.vms.VmSimple;

public class Replay {
    private static final double MIPS = 1000;
    private static final long PLENTY = 1_000_000_000L;

    public static void main(String[] args) throws Exception {
        Log.setLevel(Level.OFF);
        final int hosts = Integer.parseInt(args[1]);
        final int pes = Integer.parseInt(args[2]);
        final long mib = Long.parseLong(args[3]);
        final CloudSimPlus simulation = new CloudSimPlus();
        final List<Host> all = new ArrayList<>();
        for (int i = 0; i < hosts; i++) {
            final List<Pe> own = new ArrayList<>();
            for (int j = 0; j < pes; j++) {
                own.add(new PeSimple(MIPS));
            }
            all.add(new HostSimple(mib, PLENTY, PLENTY, own));
        }
        new DatacenterSimple(simulation, all, new VmAllocationPolicySimple());
        final DatacenterBrokerSimple broker = new DatacenterBrokerSimple(simulation);
        broker.getVmCreation().setRetryDelay(-1);
        broker.setVmDestructionDelay(1);
        final List<Vm> vms = new ArrayList<>();
        final List<Cloudlet> works = new ArrayList<>();
        double last = 0;
        for (String line : Files.readAllLines(Path.of(args[0]))) {
            final String[] row = line.split(",");
            final double start = Double.parseDouble(row[0]);
            final double end = Double.parseDouble(row[1]);
            final Vm vm = new VmSimple(MIPS, Long.parseLong(row[2]));
            vm.setRam(Long.parseLong(row[3])).setBw(1).setSize(1);
            vm.setSubmissionDelay(start);
            vms.add(vm);
            final Cloudlet work = new CloudletSimple((long) (MIPS * (end - start)), vm.getPesNumber());
            work.setVm(vm).setSubmissionDelay(start);
            works.add(work);
            last = Math.max(last, end);
        }
        broker.submitVmList(vms);
        broker.submitCloudletList(works);
        simulation.terminateAt(last + 60);
        final ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        final long begun = clock.getCurrentThreadCpuTime();
        simulation.start();
        final double seconds = (clock.getCurrentThreadCpuTime() - begun) / 1e9;
        final long failed = broker.getVmFailedList().size();
        System.out.printf("%.3f %d %d%n", seconds, vms.size() - failed, failed);
    }
}
