/**
 * Number of characters that are estimated as one token, which is about right for current models with JSON and English.
 */
export const charactersPerToken = 4;

/** Returns the estimated number of tokens of a text, from its length in characters. */
export function estimateTokenCount(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}
