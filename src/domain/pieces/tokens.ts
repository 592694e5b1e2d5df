/** Characters that are estimated as one token: about what current models take for JSON and English. */
export const charactersOfToken = 4;

/** Estimated tokens of a text of this length, in characters. */
export function tokensOfLength(characters: number): number {
  return Math.ceil(characters / charactersOfToken);
}
