import { parseNative, readJson } from './json-reader.ts';

const backslash = 0x5c;
const quote = 0x22;
const colon = 0x3a;

/**
 * Replaces JSON.parse of this thread by one that reads the names of members correctly. That of V8 12.8 to 14.6 and later
 * takes a name with an escape (`"\n"`) for another one (`"\\"`) if an object with the same names before it had that one
 * (https://github.com/nodejs/node/issues/63785). Such an object may have come with the request of anybody else, so what
 * one caller sends would change what another one sends. Libraries are affected in the same way, and therefore it is
 * replaced for all. With a reviver, which is used nowhere here, the engine's own is called. To be removed once every
 * supported Node is correct.
 */
export function repairJsonParse(): void {
  JSON.parse = parseRightly;
}

function parseRightly(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
  if (reviver !== undefined || typeof text !== 'string' || !hasEscapedName(text)) return parseNative(text, reviver);
  try {
    return readJson(text, Number);
  } catch (error) {
    // The engine's own error says where a text is not JSON.
    parseNative(text);
    throw error;
  }
}

/** Whether the name of a member is written with an escape. Looks at each character once at most. */
function hasEscapedName(text: string): boolean {
  for (let at = text.indexOf('\\'); at >= 0; at = text.indexOf('\\', at)) {
    at = endOfString(text, at);
    if (text.charCodeAt(afterSpace(text, at)) === colon) return true;
  }
  return false;
}

/** The index behind the quote that ends the string of which `at` is inside. */
function endOfString(text: string, at: number): number {
  for (let index = at; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === quote) return index + 1;
    if (code === backslash) index++;
  }
  return text.length;
}

function afterSpace(text: string, at: number): number {
  let index = at;
  while (text.charCodeAt(index) <= 0x20) index++;
  return index;
}
