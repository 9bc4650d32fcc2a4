/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The direct link: both ends in this arena.  The responder is called in the
 * requester's thread with a reference to the payload; its answer is the return
 * value.
 */
#include "rnic/internal.h"

struct direct_reply {
	struct rnic_reply base;
	struct rnic *r;
	const struct rnic_packet *request;
	struct rnic_packet *answer;
	bool answered;
};

static enum rnic_copy_result direct_answer(struct rnic_reply *reply,
					   const struct rnic_packet *answer)
{
	struct direct_reply *d = (struct direct_reply *)reply;
	enum rnic_copy_result res = RNIC_COPY_OK;

	/* A READ's bytes go straight to where they are wanted. */
	if (answer->payload && d->request->sink)
		res = rnic_sgl_copy(d->r, d->request->sink,
				    d->request->sink_off, answer->payload,
				    answer->payload_off, answer->len);
	*d->answer = *answer;
	d->answer->payload = NULL;
	/* As if one answer for each packet had come. */
	if (answer->npkts)
		d->answer->psn = rnic_psn_add(answer->psn, answer->npkts - 1);
	d->answered = !res;
	return res;
}

static void deliver(struct rnic_call *call, struct rnic_qp *peer, uint32_t qpn,
		    const struct rnic_packet *pkt, struct rnic_reply *reply)
{
	if (!rnic_responder_lock(call->r, peer))
		return;
	if (load_acquire(&peer->qpn) == qpn)
		rnic_responder_receive(call, peer, pkt, reply);
	rnic_responder_unlock(call, peer);
}

static bool hears(const struct rnic *r, const struct rnic_qp *qp)
{
	return rnic_port_active(r, qp->init.dev, qp->attr.port_num);
}

/*
 * All that have joined the group are reached, on this host.  False: there are
 * more, from d->answer->member on.
 */
static bool send_datagram(struct rnic_call *call, const struct rnic_packet *pkt,
			  struct direct_reply *d)
{
	uint32_t it = pkt->member, n;
	struct rnic_qp *peer;

	if (pkt->dest_qpn != RNIC_MULTICAST_QPN) {
		peer = rnic_qp_get(call->r, pkt->dest_qpn);
		if (peer && pkt->ah->devs & 1u << peer->init.dev)
			deliver(call, peer, pkt->dest_qpn, pkt, &d->base);
		return true;
	}
	if (!rnic_port_active(call->r, pkt->ah->dev, pkt->ah->av.port_num))
		return true;
	for (n = 0; n < RNIC_MAX_COPIES && !d->answered; n++) {
		peer = rnic_mcast_next(call->r, pkt->ah, &it);
		if (!peer)
			return true;
		if (hears(call->r, peer))
			deliver(call, peer, load_relaxed(&peer->qpn), pkt,
				&d->base);
	}
	d->answer->member = it;
	return false;
}

/*
 * A copy, so that it is steered by what is delivered, whatever its sender does
 * to it meanwhile.
 */
static __attribute__((noinline)) void
send_frame(struct rnic_call *call, const struct rnic_packet *pkt,
	   struct rnic_reply *reply)
{
	struct rnic_flow_dest dest[RNIC_MAX_COPIES];
	struct rnic_packet copy = *pkt;
	uint8_t data[RNIC_MAX_FRAME];
	struct rnic_frame frame;
	struct rnic_sgl raw;
	uint32_t i, n;

	rnic_sgl_init(&raw);
	rnic_sgl_add(&raw, NULL, (uintptr_t)data, pkt->len);
	if (pkt->len > sizeof(data) ||
	    rnic_sgl_copy(call->r, &raw, 0, pkt->payload, pkt->payload_off,
			  pkt->len)) {
		reply->send(reply, &(struct rnic_packet){
					   .op = RNIC_PKT_LOCAL_FAULT,
					   .psn = pkt->psn});
		return;
	}
	rnic_frame_parse(&frame, data, pkt->len);
	if (pkt->flags & RNIC_PKT_CHECKSUMS)
		rnic_frame_write_checksums(&frame);
	copy.payload = &raw;
	copy.payload_off = 0;
	copy.frame = &frame;
	n = rnic_flow_match(call->r, &frame, dest);
	for (i = 0; i < n; i++) {
		struct rnic_qp *peer = rnic_qp_get(call->r, dest[i].qpn);

		if (peer && peer->init.type == RNIC_QPT_HASH)
			peer = rnic_hash_pick(call->r, peer, &frame);
		copy.imm = dest[i].tag;
		if (peer && hears(call->r, peer))
			deliver(call, peer, load_relaxed(&peer->qpn), &copy,
				reply);
	}
}

static enum rnic_link_result direct_send(struct rnic_call *call,
					 struct rnic_qp *qp,
					 const struct rnic_packet *pkt,
					 struct rnic_packet *answer)
{
	struct direct_reply reply = {
		.base.send = direct_answer,
		.r = call->r,
		.request = pkt,
		.answer = answer,
	};
	struct rnic_qp *peer;

	if (unlikely(pkt->ah)) {
		if (!send_datagram(call, pkt, &reply) && !reply.answered)
			return RNIC_LINK_PART;
	} else if (unlikely(pkt->flags & RNIC_PKT_RAW)) {
		if (hears(call->r, qp))
			send_frame(call, pkt, &reply.base);
	} else {
		/* Not there, or not where the path leads: nobody hears it. */
		peer = rnic_qp_get(call->r, pkt->dest_qpn);
		if (peer && peer->init.dev == qp->peer_dev)
			deliver(call, peer, pkt->dest_qpn, pkt, &reply.base);
	}
	return reply.answered ? RNIC_LINK_ANSWERED : RNIC_LINK_SENT;
}

const struct rnic_link_ops rnic_link_direct = {
	.burst = RNIC_BURST,
	.window = 1,
	.send = direct_send,
};
