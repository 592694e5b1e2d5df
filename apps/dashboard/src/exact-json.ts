type Reviver = (name: string, value: unknown, context?: { source?: string }) => unknown;

/**
 * Converts numbers that a double would round into `JSON.rawJSON` objects, as the service does, so that they are shown
 * and saved with all digits. Browsers from before 2025 do not support this and use ordinary numbers.
 */
const reviveNumber: Reviver = (_name, value, { source } = {}) =>
  typeof value === 'number' && source !== undefined && String(value) !== source ? JSON.rawJSON(source) : value;

/** Parses JSON without rounding numbers. @throws SyntaxError */
export function parseJson(text: string): unknown {
  return supportsRawJson() ? JSON.parse(text, reviveNumber) : JSON.parse(text);
}

export function isRawNumber(value: unknown): value is { rawJSON: string } {
  return supportsRawJson() && JSON.isRawJSON(value);
}

/** Returns true if the value contains a raw number at any depth. */
export function hasRawNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return isRawNumber(value) || Object.values(value).some(hasRawNumber);
}

function supportsRawJson(): boolean {
  return 'rawJSON' in JSON;
}
