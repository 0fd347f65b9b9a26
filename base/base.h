/* base: what every room stands on and what knows nothing of neural networks.
 *
 *   arena.h     memory that is freed all at once
 *   buf.h       a growable byte string
 *   choice.h    a value that must be one of a few names
 *   dtype.h     data types of tensor elements
 *   error.h     how a function says what went wrong
 *   folder.h    temporary folders
 *   map.h       hash table from byte strings to numbers; 128-bit hashes
 *   json.h      JSON out
 *   units.h     numbers for people: 14.3 µs, 4.58 ms, 118 M
 *   table.h     aligned columns, the same table as CSV
 *   screen.h    how wide tables may be on this terminal, and colours
 *   sheet.h     tables that say what their columns are: text and JSON of one description
 *   progress.h  one line on a terminal that says how far we are
 *   graphviz.h  DOT to SVG
 */
#ifndef BZ_BASE_H
#define BZ_BASE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/choice.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/folder.h"
#include "base/graphviz.h"
#include "base/json.h"
#include "base/map.h"
#include "base/progress.h"
#include "base/screen.h"
#include "base/sheet.h"
#include "base/table.h"
#include "base/units.h"

#endif
