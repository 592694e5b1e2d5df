import { hasEscapedName, parseNative, readJson } from './json-reader.ts';

/**
 * Replaces JSON.parse of this thread by one that reads the names of members correctly, for libraries too. V8 has a fault
 * in versions 12.8 to 14.6 at least (https://github.com/nodejs/node/issues/63785): where a name has an escape (`"\n"`), it
 * may return a name of an earlier text (`"\\"`) whose object had begun with the same names. The earlier text may have come
 * from anybody, so what one caller sends would change what another one sends. To be removed once every supported Node is
 * correct.
 */
export function repairJsonParse(): void {
  JSON.parse = parseRightly;
}

function parseRightly(text: string, reviver?: Parameters<typeof JSON.parse>[1]): unknown {
  // Nothing here uses a reviver.
  if (reviver !== undefined || typeof text !== 'string' || !hasEscapedName(text)) return parseNative(text, reviver);
  try {
    return readJson(text, Number);
  } catch (error) {
    // The engine's own error says where a text is not JSON.
    parseNative(text);
    throw error;
  }
}
