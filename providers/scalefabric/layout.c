// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libibverbs' private interface kept its version number while struct verbs_qp
 * grew.  Ask the library that runs, before it is handed a device.
 */
#include <stdio.h>
#include <string.h>

#include "scalefabric.h"

/* Room for a struct verbs_qp of any release. */
union sf_any_qp {
	struct verbs_qp vqp;
	uint64_t room[128];
};

static bool sf_probe_layout(void)
{
	union sf_any_qp probe;

	memset(&probe, 0, sizeof(probe));
	probe.vqp.comp_mask = VERBS_QP_EX;
	return ibv_qp_to_qp_ex(&probe.vqp.qp);
}

/* The verdict holds for the process, so one line is enough. */
static bool sf_layout_ok;

static void sf_check_layout(void)
{
	sf_layout_ok = sf_probe_layout();
	if (!sf_layout_ok)
		fprintf(stderr,
			"scalefabric: built for another release of libibverbs "
			"than the one installed; install the scalefabric "
			"provider package that matches your libibverbs1\n");
}

bool sf_layout_matches(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sf_check_layout);
	return sf_layout_ok;
}
