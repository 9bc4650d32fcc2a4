// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "scalefabric.h"

struct ibv_pd *sf_alloc_pd(struct ibv_context *context)
{
	struct sf_alloc_pd_resp resp = {};
	struct sf_alloc_pd cmd = {};
	struct sf_pd *pd;
	int err;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;

	err = ibv_cmd_alloc_pd(context, &pd->ibv_pd, &cmd.ibv_cmd, sizeof(cmd),
			       &resp.ibv_resp, sizeof(resp));
	if (err) {
		free(pd);
		errno = err;
		return NULL;
	}

	pd->pdn = resp.drv_payload.pdn;
	return &pd->ibv_pd;
}

int sf_dealloc_pd(struct ibv_pd *ibpd)
{
	struct sf_pd *pd = to_sf_pd(ibpd);
	int err;

	err = ibv_cmd_dealloc_pd(ibpd);
	if (err)
		return err;

	free(pd);
	return 0;
}
