type WithSource = (name: string, value: unknown, context?: { source?: string }) => unknown;

/**
 * A number whose digits a double would change is a `JSON.rawJSON` object, as in the service: what is read is saved again,
 * and shown, with its digits. Browsers from before 2025 can do neither and have ordinary numbers.
 */
const withDigits: WithSource = (_name, value, { source } = {}) =>
  typeof value === 'number' && source !== undefined && String(value) !== source ? JSON.rawJSON(source) : value;

/** @throws SyntaxError */
export function parseJson(text: string): unknown {
  return isRawJsonKnown() ? JSON.parse(text, withDigits) : JSON.parse(text);
}

export function isRawNumber(value: unknown): value is { rawJSON: string } {
  return isRawJsonKnown() && JSON.isRawJSON(value);
}

/** Whether a number in a value has its digits. */
export function holdsRawNumber(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return isRawNumber(value) || Object.values(value).some(holdsRawNumber);
}

function isRawJsonKnown(): boolean {
  return 'rawJSON' in JSON;
}
