/** Removes control characters, so that text from the cluster can't control the reader's terminal. Pure. */

/** The text with a space in place of each control character and line separator: YAML 1.1 ends a comment at U+2028, too. */
export const plain = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, " ");
