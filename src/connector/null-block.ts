/** The id that no real block has. Mirrors `NULL_BLOCK_ID`. */
export const NULL_BLOCK_ID: 0 = 0;
