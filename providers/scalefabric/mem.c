// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Regions of cmd_fd.  A device may put many queues behind one key, so mappings
 * are kept by key and counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "scalefabric.h"

static struct sf_map *sf_find_map(struct sf_context *ctx,
				  const struct scalefabric_region *region)
{
	struct sf_map *map;

	for (map = ctx->maps; map; map = map->next)
		if (map->key == region->mmap_key &&
		    map->length == region->length)
			return map;
	return NULL;
}

static struct sf_map *sf_new_map(struct sf_context *ctx,
				 const struct scalefabric_region *region)
{
	struct sf_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;

	map->key = region->mmap_key;
	map->length = region->length;
	map->addr = mmap(NULL, map->length, PROT_READ | PROT_WRITE, MAP_SHARED,
			 ctx->vctx.context.cmd_fd, map->key);
	if (map->addr == MAP_FAILED) {
		free(map);
		return NULL;
	}

	map->next = ctx->maps;
	ctx->maps = map;
	return map;
}

static void sf_drop_map(struct sf_context *ctx, struct sf_map *map)
{
	struct sf_map **p = &ctx->maps;

	while (*p != map)
		p = &(*p)->next;
	*p = map->next;
	munmap(map->addr, map->length);
	free(map);
}

/* Every region holds lines or slots of 64 bytes or ring entries of 32. */
static bool sf_region_holds(const struct scalefabric_region *region,
			    size_t size)
{
	return region->length >= size &&
	       region->offset <= region->length - size &&
	       region->offset % 32 == 0;
}

int sf_map_region(struct sf_context *ctx,
		  const struct scalefabric_region *region, size_t size,
		  struct sf_view *view)
{
	struct sf_map *map;
	int err = 0;

	if (!sf_region_holds(region, size)) {
		verbs_err(&ctx->vctx, "driver answered an impossible region\n");
		return EPROTO;
	}

	pthread_mutex_lock(&ctx->map_lock);
	map = sf_find_map(ctx, region);
	if (!map)
		map = sf_new_map(ctx, region);
	if (map)
		map->refs++;
	else
		err = errno;
	pthread_mutex_unlock(&ctx->map_lock);
	if (err)
		return err;

	view->map = map;
	view->addr = (char *)map->addr + region->offset;
	return 0;
}

void sf_unmap_region(struct sf_context *ctx, struct sf_view *view)
{
	if (!view->map)
		return;

	pthread_mutex_lock(&ctx->map_lock);
	if (--view->map->refs == 0)
		sf_drop_map(ctx, view->map);
	pthread_mutex_unlock(&ctx->map_lock);
	view->map = NULL;
}
