// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The queues of events, one per channel. */
#include <stdlib.h>
#include "softnic/cma_id.h"

struct cma_event *cma_new_event(const struct cma_id *id, uint32_t type,
				int status)
{
	struct cma_event *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->resp.uid = id->uid;
	e->resp.id = id->id;
	e->resp.event = type;
	e->resp.status = (uint32_t)status;
	return e;
}

void cma_queue_event(struct cma *cma, struct cma_id *id, struct cma_event *e)
{
	struct cma_channel *ch = id->channel;

	e->id = id;
	*ch->last = e;
	ch->last = &e->next;
	ch->waiting++;
	cma->ops->ready(cma->host, ch->number);
}

void cma_tell(struct cma *cma, struct cma_id *id, uint32_t type, int status)
{
	struct cma_event *e = cma_new_event(id, type, status);

	if (e)
		cma_queue_event(cma, id, e);
}

void cma_set_private(const struct cma_id *id, struct cma_event *e,
		     const void *data, uint32_t len)
{
	if (cma_is_ud(id)) {
		memcpy(e->resp.param.ud.private_data, data, len);
		e->resp.param.ud.private_data_len = len;
	} else {
		memcpy(e->resp.param.conn.private_data, data, len);
		e->resp.param.conn.private_data_len = len;
	}
}

struct cma_event *cma_take_events(struct cma_id *id,
				  const struct cma_group *group)
{
	struct cma_channel *ch = id->channel;
	struct cma_event *taken = NULL, **end = &taken, **p = &ch->first;

	ch->last = &ch->first;
	while (*p) {
		struct cma_event *e = *p;

		if (e->id != id || (group && e->group != group)) {
			ch->last = p = &e->next;
			continue;
		}
		*p = e->next;
		e->next = NULL;
		*end = e;
		end = &e->next;
		ch->waiting--;
	}
	return taken;
}
