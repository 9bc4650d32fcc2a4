/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ports that go down and come up.  A path of a port that is down leads nowhere:
 * connected queue pairs and address handles, which hold where their path leads,
 * are told, so that nobody has to look at ports while packets move.  What is
 * sent meanwhile is lost, as on a cable that is pulled: reliable requests are
 * repeated until their retries end, datagrams are gone (IBTA vol. 1, 9.9.2.1).
 */
#include "rnic/internal.h"

#define PORT_DOWN 1 /* enum ibv_port_state */
#define PORT_ACTIVE 4

bool rnic_port_active(const struct rnic *r, uint32_t dev, uint32_t port)
{
	return load_relaxed(&r->sh->device[dev % RNIC_MAX_DEVICES]
				     .port[(port - 1) % RNIC_MAX_PORTS]
				     .info.state) == PORT_ACTIVE;
}

int rnic_port_set(struct rnic *r, uint32_t dev, uint32_t port, bool up)
{
	uint32_t to = up ? PORT_ACTIVE : PORT_DOWN;
	struct rnic_port_info *info;

	if (dev >= r->sh->devices || !port ||
	    port > r->sh->device[dev].info.ports)
		return EINVAL;
	info = &r->sh->device[dev].port[port - 1].info;
	if (info->state == to)
		return EALREADY;
	store_release(&info->state, to);
	rnic_qp_paths_changed(r);
	rnic_ah_paths_changed(r);
	return 0;
}
