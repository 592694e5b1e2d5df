/** What a value counts besides its characters: an object may be a schema, an element a value that is allowed. */
const moreOf = { object: 40, element: 8, characterOfPattern: 8 };
/** What a compiled tool counts, and each header of the server that it has. */
const countOf = { tool: 500, sharedHeader: 2 };
/** A URL is compiled to a list of its parts, which takes five times as much as other texts. */
export const moreOfUrl = 4;

/** The size of a JSON value when it is compiled, in characters of about ten bytes. */
export function sizeOfValue(value: unknown): number {
  if (typeof value === 'string') return value.length + 3;
  if (typeof value !== 'object' || value === null) return 6;
  let size = 0;
  if (Array.isArray(value)) {
    for (const item of value) size += moreOf.element + sizeOfValue(item);
    return size;
  }
  for (const [name, inner] of Object.entries(value)) {
    size += name.length + 4 + sizeOfValue(inner);
    if (name === 'pattern' && typeof inner === 'string') size += moreOf.characterOfPattern * inner.length;
  }
  return moreOf.object + size;
}

/** What a compiled tool of this server counts besides its text. */
export function ofEachTool({ headers = {} }: { headers?: Record<string, string> | undefined }): number {
  return countOf.tool + countOf.sharedHeader * Object.keys(headers).length;
}
