/* SPDX-License-Identifier: MIT */
/* flexsc report: the papers' figures beside ours, by flexbench. */
#include "bench.h"
#include "command.h"

int command_report(int argc, char **argv)
{
	return flexbench_run(argv[0], "flexstudy.report", argv + 1);
}
