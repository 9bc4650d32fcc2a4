/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counter files of the tree are brought up to date when they are opened. */
#ifndef SFNIC_REFRESH_H
#define SFNIC_REFRESH_H

/*
 * Does nothing unless @path, which lies in the tree below @dir, is a counter
 * file.  Connects to the daemon if it is one.
 */
void refresh_counter(const char *dir, const char *path);

/* The same for a path below the current directory. */
void refresh_relative(const char *dir, const char *path);

#endif
