# Thin: every target calls one script or one tool. `make` alone lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup constraints hardware rack rack-up demo predictions demo-consolidation failover rack-status rack-down test night stalls mutants sim security replay robustness robustness-rdma hardware-cxl hardware-rdma bench-scheduler bench-ledger bench-ha bench-cxl bench-mitigation bench-shm bench-rdma tempest devstack devstack-check bench-rpc bench-telemetry bench-qos bench-lifetime bench-plan planner bench-predict bench-signatures bench-ml bench-planner bench-import bench-li bench-pager bench-replacement bench-extension bench-migration torture-pager docs

# Sizes and place of the rack: real libvirt hosts, fake computes, GiB of the pool, folder, first of 100 loopback ports;
# TLS=1: connections to database, broker and APIs are encrypted, others refused.
HOSTS ?= 2
FAKES ?= 4
SLICES ?= 16
RACK_DIR ?= $(CURDIR)/.rack
RACK_PORT_BASE ?= 21000
TLS ?= 0
KILL ?= 1
# Of the targets that measure.
REQUESTS ?= 500
PYTEST_ARGS ?=
WORKERS ?= 3
VENV ?= $(CURDIR)/.venv
export HOSTS FAKES SLICES RACK_DIR RACK_PORT_BASE TLS REQUESTS VENV

PYTHON := $(VENV)/bin/python
RACK := $(PYTHON) -m pondstack_rack
option = $(if $($(2)),--$(1) '$($(2))')

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install what rack and tests need: Debian packages, a pinned venv in .venv
	@tools/setup.sh

constraints: setup ## Pin in constraints.txt what setup.cfg and rack/setup.cfg ask for; what is pinned stays (UPGRADE=1: all anew)
	@printf 'uv\npondstack @ .\n' | $(VENV)/bin/uv pip compile -q $(if $(filter-out 0,$(UPGRADE)),--upgrade) --universal --python-version 3.11 --all-extras \
		--no-annotate --no-emit-package pondstack --custom-compile-command "make constraints" --output-file constraints.txt setup.cfg rack/setup.cfg -

hardware: setup ## Build the disk of the emulated hosts, where it is missing or out of date
	@tools/hardware.sh

rack: rack-up demo ## Start a small real cloud with a pool, boot a zNUMA guest and show it (HOSTS, FAKES, SLICES, RACK_DIR, TLS=1)

rack-up: setup ## Start the rack without the demonstration
	@$(RACK) up

demo: ## Boot the zNUMA guest on the running rack and show it
	@$(RACK) demo

predictions: ## Have VMs of the running rack live with made-up traces: the next ones are placed by history, a misprediction is mended
	@$(RACK) predictions

demo-consolidation: rack-up ## On the rack, load falls, a host is emptied, lends, sleeps, serves a guest and is woken (synthetic loads, emulated sleep); minutes
	@$(RACK) consolidation

failover: ## Kill the running rack's leading controller and watch the other one take over (KILL=0: hand over; TIMES)
	@$(RACK) failover $(if $(filter-out 0,$(KILL)),--kill) $(call option,times,TIMES)

rack-status: ## Show which services of the rack run
	@$(RACK) status

rack-down: ## Stop the rack and remove all that it made
	@if [ -x $(PYTHON) ]; then $(RACK) down; else echo "no rack: nothing was set up"; fi

tempest: ## Run our Tempest plugin and stock tests of compute on the running rack (PASSES, REGEX, CONCURRENCY, FLAVORS=pool: stock tests with pool memory, COMPARE=1: with our plugins and without)
	@$(RACK) tempest $(call option,passes,PASSES) $(call option,regex,REGEX) $(call option,concurrency,CONCURRENCY) $(call option,flavors,FLAVORS) $(if $(filter-out 0,$(COMPARE)),--compare)

test: $(if $(filter unit,$(TIER)),setup,hardware) ## Run all tests, side by side (WORKERS), or some (TIER: unit, tree, db, functional, robustness, rack, hardware; PYTEST_ARGS)
	@WORKERS=$(WORKERS) $(PYTHON) -m $(if $(TIER)$(PYTEST_ARGS),pytest -n $(WORKERS) $(if $(TIER),-m $(TIER)) $(PYTEST_ARGS),tests.ci)

night: hardware ## Explore: tests of the night too, with new seeds and more cycles, then the freezer over all that kill and pause, then the planted faults (PARTS=tests,stalls,mutants)
	@$(PYTHON) -m tests.ci.night --workers $(WORKERS) $(call option,parts,PARTS) $(PYTEST_ARGS)

stalls: hardware ## Run what kills, pauses and cuts off while all of it is frozen again and again (FREEZE, EVERY in seconds; ALL=1: all tests)
	@$(PYTHON) -m tests.ci.freezer $(call option,freeze,FREEZE) $(call option,every,EVERY) -- $(PYTHON) -m $(if $(filter-out 0,$(ALL)),tests.ci,pytest -n $(WORKERS) -m faults $(PYTEST_ARGS))

mutants: setup ## Plant faults in a copy of the tree, one at a time: a test must fail at each (FILES: files and folders, all by default; WORKERS)
	@$(PYTHON) -m tests.mutants --workers $(WORKERS) $(FILES)

docs: setup ## Build the documentation (doc/build/html) and the man pages (doc/build/man); fails on a warning or a dead link
	@for made in html man; do $(PYTHON) -m sphinx -q -W --keep-going -n -b $$made -d doc/build/doctrees doc/source doc/build/$$made || exit; done
	@echo doc/build/html/index.html doc/build/man

sim: ## Run seeded histories of the whole system in one thread (HISTORIES, SEED, KIND=slices, heirs, lending, removal, guests, holding, mitigation or plans)
	@$(PYTHON) -m tests.sim $(call option,histories,HISTORIES) $(call option,seed,SEED) $(call option,kind,KIND) $(call option,processes,PROCESSES)

security: setup ## Seeded attacks on bus, API, agent's files, sockets, native code: tried, refused, accepted (MINUTES, SEED; ONLY=target, STEPS)
	@$(PYTHON) -W ignore -m tests.security $(call option,minutes,MINUTES) $(call option,seed,SEED) $(call option,only,ONLY) $(call option,steps,STEPS)

replay: ## Replay requests of a trace against the running rack and look for leaks (REQUESTS, TRACE, SKIP, LEAST_MIB, LOG=file; COMPARE=planner: what the planner places elsewhere, and why; IO_OPS_WEIGHT)
	@$(PYTHON) -m bench.replay --requests $(REQUESTS) $(call option,trace,TRACE) $(call option,skip,SKIP) \
		$(call option,in-flight,IN_FLIGHT) $(call option,speed,SPEED) $(call option,seed,SEED) $(call option,log,LOG) $(call option,compare,COMPARE) \
		$(call option,least-mib,LEAST_MIB) $(call option,io-ops-weight,IO_OPS_WEIGHT)

robustness: setup ## Kill, pause and cut off controllers under load, check all they said (KILLS, PAUSES, SEED, DATABASE, more in robustness.md); MITIGATIONS=50, MOVES=20, PLANS=58: on a rack, kill at each step of mitigations, of live migrations of remote memory, of consolidation plans
	@$(PYTHON) -W ignore -m $(if $(MITIGATIONS),tests.robustness.mitigations $(call option,mitigations,MITIGATIONS),$(if $(MOVES),tests.robustness.moves $(call option,moves,MOVES),$(if $(PLANS),tests.robustness.plans $(call option,plans,PLANS),\
		tests.robustness $(call option,kills,KILLS) $(call option,pauses,PAUSES) $(call option,others,OTHERS) $(call option,cuts,CUTS) \
		$(call option,disks,DISKS) $(call option,brokers,BROKERS) $(call option,rpc,RPC) $(call option,database,DATABASE)))) $(call option,seed,SEED) $(call option,reports,REPORTS)

robustness-rdma: setup ## Kill lenders of memory under load; no page may be wrong or lost (KILLS, SEED, DRIVER)
	@$(PYTHON) -W ignore -m rdma.tests.kills $(call option,kills,KILLS) $(call option,seed,SEED) $(call option,driver,DRIVER)

torture-pager: setup ## Kill and freeze data plane, lenders, agents, controllers under a real guest with remote memory: no word is wrong (MINUTES, SEED, EVENTS; GUEST=standin, GUEST=qemu: data plane and lenders only, many more deaths, DRIVER=tcp: lenders over it)
	@$(PYTHON) -W ignore -m tests.robustness.extension $(call option,minutes,MINUTES) $(call option,seed,SEED) $(call option,events,EVENTS) $(call option,guest,GUEST) $(call option,driver,DRIVER) $(call option,reports,REPORTS)

hardware-cxl: hardware ## Test CXL memory in emulated hosts: QEMU with emulated CXL devices, minutes without KVM (PYTEST_ARGS)
	@$(PYTHON) -m pytest -v tests/hardware $(PYTEST_ARGS)

hardware-rdma: hardware ## Test RDMA between emulated hosts, over soft-RoCE: frozen, suspended, attacked lenders, calls, pages of a guest (MIB, 1 GiB; PYTEST_ARGS)
	@PONDSTACK_RDMA_MIB=$(or $(MIB),1024) PONDSTACK_RDMA_WHOLE=1 $(PYTHON) -m pytest -v tests/hardware/test_rdma.py tests/hardware/test_rdma_contract.py tests/hardware/test_rdma_pager.py $(PYTEST_ARGS)

bench-scheduler: setup ## Time of Nova's select_destinations with our plugins against without
	@$(PYTHON) -m bench.scheduler $(call option,rounds,ROUNDS)

bench-predict: setup ## Time of deciding a split in nova-scheduler's process, against asking the controller as before
	@$(PYTHON) -W ignore -m bench.predict $(call option,rounds,ROUNDS)

bench-planner: setup ## The planner's replay beside CloudSim Plus, and up to ten million servers (SERVERS, HOSTS, ROUNDS; mvn, java)
	@$(PYTHON) -m bench.planner.speed $(call option,servers,SERVERS) $(call option,rounds,ROUNDS)

bench-import: setup ## The peak of memory of an import by pondstack-planner, of a generated trace, SYNTHETIC (GIB of the file, MOST GiB of memory)
	@$(PYTHON) -m bench.planner.import_memory $(call option,gib,GIB) $(call option,most-gib,MOST)

bench-ledger: setup ## Assign and release against Placement's allocations on the same MariaDB
	@$(PYTHON) -m bench.ledger $(call option,rounds,ROUNDS) $(call option,cycles,CYCLES) $(call option,threads,THREADS)

bench-signatures: setup ## What signed messages cost a guest's start and end, beside unsigned ones (ROUNDS, CYCLES)
	@$(PYTHON) -W ignore -m bench.signatures $(call option,rounds,ROUNDS) $(call option,cycles,CYCLES)

bench-ha: setup ## Cost of an operation with and without the mirror, throughput against Placement on the same database
	@$(PYTHON) -W ignore -m bench.ha $(call option,rounds,ROUNDS) $(call option,cycles,CYCLES) \
		$(call option,threads,THREADS) $(call option,database,DATABASE)

bench-telemetry: setup ## What the telemetry of 10,000 guests costs the controller, and an assign's time beside it (VMS, TURNS, DATABASE)
	@$(PYTHON) -W ignore -m bench.telemetry $(call option,vms,VMS) $(call option,turns,TURNS) $(call option,database,DATABASE)

bench-qos: setup ## What a round of the QoS monitor over 10,000 VMs costs the leader (VMS, TOUCHED percent, ROUNDS, DATABASE)
	@$(PYTHON) -W ignore -m bench.qos $(call option,vms,VMS) $(call option,touched,TOUCHED) $(call option,rounds,ROUNDS) $(call option,database,DATABASE)

bench-plan: setup ## Time of deciding a consolidation plan for 12,500 hosts and 150,000 servers (synthetic), against a strategy of OpenStack Watcher's on the same snapshots (PLAN_HOSTS, ROUNDS, SEED, WATCHER_SECONDS)
	@$(PYTHON) -W ignore -m bench.plan $(call option,hosts,PLAN_HOSTS) $(call option,rounds,ROUNDS) $(call option,seed,SEED) $(call option,watcher-seconds,WATCHER_SECONDS)

planner: setup ## The report of pondstack-planner on the trace that ships, SYNTHETIC; fails where it does not hold (REPORTS folder, SERVERS, DAYS, SEEDS, JOBS)
	@$(PYTHON) -m bench.planner_report $(call option,folder,REPORTS) $(call option,servers,SERVERS) $(call option,days,DAYS) $(call option,seeds,SEEDS) $(call option,jobs,JOBS)

bench-lifetime: setup ## How well the remaining lifetime of VMs is told from flavor and age, on a trace (DATA=folder of azure2017's format, SPLIT, DRAWS)
	@$(PYTHON) -W ignore -m bench.lifetime $(call option,data,DATA) $(call option,split,SPLIT) $(call option,draws,DRAWS)

bench-cxl: hardware ## The CXL driver's time per GiB against the raw daxctl commands in the same emulated host
	@$(PYTHON) -W ignore -m bench.cxl $(call option,rounds,ROUNDS)

bench-mitigation: hardware ## Moving a guest's pool memory to local memory against the raw migratepages in the same emulated host
	@$(PYTHON) -W ignore -m bench.mitigation $(call option,rounds,ROUNDS)

bench-shm: setup ## Pages of shared memory read and written through the transport against memcpy of the same pages
	@$(PYTHON) -W ignore -m bench.shm $(call option,rounds,ROUNDS) $(call option,seed,SEED)

bench-rdma: hardware ## Reads of 4 KiB by the verbs driver against perftest's ib_read_lat and ib_read_bw in the same emulated host
	@$(PYTHON) -W ignore -m bench.rdma $(call option,rounds,ROUNDS) $(call option,reads,READS)

bench-pager: setup ## Fault service of pondstack-data-plane against the least that userfaultfd can do, plain and sealed (ROUNDS, SEED)
	@$(PYTHON) -W ignore -m bench.pager $(call option,rounds,ROUNDS) $(call option,seed,SEED)

bench-replacement: setup ## Replacement policies on Zombieland's micro benchmark, by the share of local memory (ROUNDS, SEED)
	@$(PYTHON) -W ignore -m bench.replacement $(call option,rounds,ROUNDS) $(call option,seed,SEED)

bench-extension: hardware ## RAM extension against zram, file and NBD swap: faults, policies, Zombieland's tables, overcommit with the SSD (PARTS, ROUNDS, SHARES, WAYS, WORKLOADS, DISK, PLOTS, SEED)
	@$(PYTHON) -W ignore -m bench.extension $(call option,parts,PARTS) $(call option,rounds,ROUNDS) $(call option,shares,SHARES) \
		$(call option,ways,WAYS) $(call option,workloads,WORKLOADS) $(call option,disk,DISK) $(call option,plots,PLOTS) $(call option,seed,SEED)

bench-migration: setup ## Bytes of a live migration of a guest with half of its RAM in the pool, counted on the wire over all channels, against an ordinary one, by working set (ROUNDS, SHARES, APART, RATE, DISK)
	@$(PYTHON) -W ignore -m bench.migration $(call option,rounds,ROUNDS) $(call option,shares,SHARES) $(call option,apart,APART) $(call option,rate,RATE) $(call option,disk,DISK)

bench-ml: setup ## The untouched-memory model on a folder of traces against static shares and last week's percentile: OP and UM, intervals, plots; settings chosen and judged by nested folds of VMs, forward in time (DATA; SAMPLES, PLOTS, DRAWS, SEED)
	@nice -n 19 $(PYTHON) -W ignore -m bench.ml.latency $(call option,samples,SAMPLES) $(call option,plots,PLOTS)
	@nice -n 19 $(PYTHON) -W ignore -m bench.ml $(call option,data,DATA) $(call option,samples,SAMPLES) $(call option,plots,PLOTS) $(call option,draws,DRAWS) $(call option,seed,SEED)

bench-li: setup ## The latency-sensitivity model against single counters: FP and LI, 99 % intervals, plot (SAMPLES of pondstack-sample, else made up; PLOTS, SPLITS, WORKLOADS, SEED)
	@nice -n 19 $(PYTHON) -W ignore -m bench.ml.latency $(call option,samples,SAMPLES) $(call option,plots,PLOTS) $(call option,splits,SPLITS) $(call option,workloads,WORKLOADS) $(call option,seed,SEED)

devstack-check: setup ## Test the DevStack plugin: each phase with stand-ins, then without each of its lines (DEVSTACK_DIR)
	@$(PYTHON) -m tests.devstack

devstack: setup ## A real stack.sh in a systemd container, a zNUMA guest in it, unstack.sh, clean.sh (GIT_BASE, TIMES, NODES, VIRT_DRIVER)
	@devstack/tools/run.sh

bench-rpc: $(if $(filter verbs,$(DRIVER)),hardware,setup) ## Calls between components over RDMA against the same calls over RabbitMQ (DRIVER=verbs: between emulated hosts; ROUNDS)
	@$(PYTHON) -W ignore -m bench.rpc $(call option,rounds,ROUNDS) $(call option,driver,DRIVER)
