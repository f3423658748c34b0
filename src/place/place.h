/*
 * place.h - the door of place: on which node, in which file does a page belong?
 *
 *   design.h         the notation of designs
 *   init_options.h   what is decided when a repository is created
 *   superblock.h     the file that makes a directory a repository, and says of which design
 *
 *   node.h           a directory that holds files of pages; its identity, its files
 *   busy.h           which requests are under way on it, of all processes
 *
 *   nodes.h          the table of nodes: which can be used, and which one takes a new page
 *   share.h          hash distribution: which node takes which ids
 *   bin.h            a node and a range of ids: where new pages go
 *   parts.h          which file has a page, after files were divided
 *   nodes_make.h     makes the nodes of a new repository
 *
 *   page id --- share.h, nodes.h ---> bin (node, range) ---> file of that bin     for a new page
 *   page id, place in the catalog --- parts.h -------------> file                 for one that is stored
 *
 * It reads rows of the catalog and changes some in memory, but the holder of the transaction writes them. It opens
 * files of nodes for others, and never looks into them: what they contain is the question of pagefile.
 */
#ifndef WB_PLACE_PLACE_H
#define WB_PLACE_PLACE_H

#include "place/bin.h"
#include "place/busy.h"
#include "place/design.h"
#include "place/init_options.h"
#include "place/node.h"
#include "place/nodes.h"
#include "place/nodes_make.h"
#include "place/parts.h"
#include "place/share.h"
#include "place/superblock.h"

#endif
