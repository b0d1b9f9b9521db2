/** Removes control characters, so that text from the cluster can't control the reader's terminal. Pure. */

/** The text with a space in place of each control character. */
export const plain = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}]/gu, " ");
