#!/bin/sh
# Makes the files of this folder again, in a folder /demo that has this script and calls.c; as root, with gcc and perf.
set -eu
cd /demo
gcc -O1 -g -fno-omit-frame-pointer -pthread calls.c -o calls
record() { perf record "$@" 2> /dev/null; }
record -F 500 -e cpu-clock -g -o fp.data ./calls 20
record -F 200 -e cpu-clock:u --call-graph dwarf,1024 -o dwarf.data ./calls 20
# Of other processes there is nothing but samples of their processor.
record -F 300 -e task-clock --per-thread -o per-thread.data ./calls 20
record -F 300 -e cpu-clock -g -o - ./calls 20 > pipe.data
record -F 500 -e cpu-clock -g -z -o compressed.data ./calls 40
record -F 100 -e cpu-clock,page-faults,sched:sched_switch -g -o events.data ./calls 20
record -c 3000000 -e '{cpu-clock,page-faults}' --sample-identifier --buildid-mmap -d -T -P -R --sample-cpu --phys-data --data-page-size \
    --code-page-size -W --intr-regs --user-regs --call-graph dwarf,256 --namespaces -k CLOCK_MONOTONIC -o parts.data ./calls 20
./calls 2000 & calls=$!
perf record -F 200 -m 1 -e cpu-clock -g -o killed.data -p $calls 2> /dev/null & perf=$!
sleep 1
kill -9 $perf $calls
