import { getValueAt } from '@toolhost/errors/dot-path';
import { OAuthError } from '@toolhost/errors/errors';
import { isRawNumber } from '@toolhost/json/json';
import { getOAuthValues, type OAuth, type OAuthValueSource } from '@toolhost/tool-config/oauth';
import {
  extractGroup,
  getListPath,
  isDeclaredOrigin,
  parseValuePath,
  type ValuePath,
} from '@toolhost/tool-config/oauth-values';
import { toSingleLine } from '../http/page.ts';
import type { AccountChoice, ProviderTokens } from './oauth-deps.ts';

/** Responses of a login that values are taken from. */
type LoginResponses = { callback: URLSearchParams; token: object; userinfo: unknown };
type Values = Record<string, string>;

/** Maximum length of a value. A URL and a header can carry it. */
const maxValueLength = 1000;
/** Maximum number of accounts that a person is shown. */
export const maxChoices = 100;

/**
 * Takes the values of a login from its responses (`oauth.values`). If they are in a list with several entries, those of
 * each entry are returned as a choice.
 * @throws OAuthError server_error if a value is missing or not allowed
 */
export function collectValues(
  oauth: OAuth,
  responses: LoginResponses,
): { values: Values; choices: AccountChoice[] | undefined } {
  const sources = getOAuthValues(oauth).flatMap(([name, source]) => {
    const path = parseValuePath(source.from);
    return path ? [{ name, source, path }] : [];
  });
  const listed = sources.filter(({ path }) => getListPath(path));
  const values: Values = {};
  for (const { name, source, path } of sources.filter((entry) => !listed.includes(entry)))
    values[name] = getValue(name, source, readText(path, responses));
  const [first] = listed;
  if (!first) return { values, choices: undefined };
  const entries = getValueAt(responses.userinfo, getListPath(first.path) ?? []);
  const choices = (Array.isArray(entries) ? entries : []).flatMap((entry: unknown): AccountChoice[] => {
    const found = listed.map(({ name, source, path }) => [
      name,
      toAllowedValue(source, toText(getValueAt(entry, path.names.slice((getListPath(path) ?? []).length + 1)))),
    ]);
    // Entries without usable values cannot be chosen, such as those of another product.
    if (found.some(([, value]) => value === undefined)) return [];
    return [{ ...describeEntry(entry), values: Object.fromEntries(found) as Values }];
  });
  const [only, ...others] = choices;
  if (!only) throw new OAuthError('server_error', 'this person has no account at the provider that the server can use');
  if (others.length === 0) return { values: { ...values, ...only.values }, choices: undefined };
  return { values, choices: choices.slice(0, maxChoices) };
}

/**
 * Returns the values of a login after a refresh. Those that the response contains are new; the others are checked again,
 * because the configuration may have changed.
 * @throws OAuthError invalid_grant if a value is no longer allowed
 */
export function refreshValues(oauth: OAuth, { values: previous = {} }: ProviderTokens, token: object): Values {
  const values: Values = {};
  for (const [name, source] of getOAuthValues(oauth)) {
    const path = parseValuePath(source.from);
    const text = path?.origin === 'token' ? toText(getValueAt(token, path.names)) : undefined;
    const stored = Object.hasOwn(previous, name) ? previous[name] : undefined;
    // A stored value is the group of its pattern already.
    const value =
      text === undefined ? toAllowedValue({ ...source, pattern: undefined }, stored) : toAllowedValue(source, text);
    if (value !== undefined) values[name] = value;
    else if (text !== undefined || stored !== undefined)
      throw new OAuthError('invalid_grant', `the login no longer provides a usable ${name}`);
  }
  return values;
}

/** Returns the callback parameters that the token request repeats. @throws OAuthError server_error */
export function getCallbackValues(names: readonly string[], callback: URLSearchParams): Values {
  return Object.fromEntries(
    names.map((name) => {
      const value = callback.get(name);
      if (value === null || !isUsable(value)) throw createMissingError(`${name} in the callback`);
      return [name, value];
    }),
  );
}

/**
 * Returns the origin of the token endpoint that the callback names.
 * @throws OAuthError server_error unless it is an https origin that the configuration allows
 */
export function getTokenOrigin(source: NonNullable<OAuth['token_url_from']>, callback: URLSearchParams): string {
  const [name = ''] = parseValuePath(source.from)?.names ?? [];
  const origin = callback.get(name) ?? '';
  if (isDeclaredOrigin(origin, source.hosts)) return origin;
  throw new OAuthError(
    'server_error',
    'the provider named a token endpoint that this server does not allow, so the login ended before anything was sent there',
  );
}

function readText({ origin, names }: ValuePath, { callback, token, userinfo }: LoginResponses): string | undefined {
  if (origin === 'callback') return callback.get(names[0] ?? '') ?? undefined;
  return toText(getValueAt(origin === 'token' ? token : userinfo, names));
}

/** @throws OAuthError server_error */
function getValue(name: string, source: OAuthValueSource, text: string | undefined): string {
  const value = toAllowedValue(source, text);
  if (value === undefined) throw createMissingError(`value for ${name}`);
  return value;
}

function createMissingError(subject: string): OAuthError {
  return new OAuthError('server_error', `the provider sent no usable ${subject}`);
}

/** Returns the value of a text, or undefined if the text does not match the pattern or the hosts of the value. */
function toAllowedValue({ pattern, hosts }: OAuthValueSource, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const value = pattern === undefined ? text : extractGroup(pattern, text);
  if (value === undefined || !isUsable(value)) return undefined;
  return hosts && !isDeclaredOrigin(value, hosts) ? undefined : value;
}

/** Returns true if a URL and a header can carry the value, and if it is not a relative path segment. */
function isUsable(value: string): boolean {
  const isSegment = value !== '' && value !== '.' && value !== '..';
  return isSegment && value.length <= maxValueLength && !/\p{Cc}/u.test(value) && value.isWellFormed();
}

/** Returns a text, or the exact digits of a number. */
function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (isRawNumber(value)) return value.rawJSON;
  return typeof value === 'number' && (Number.isSafeInteger(value) || !Number.isInteger(value))
    ? String(value)
    : undefined;
}

const maxLabelLength = 100;
const nameFields = ['name', 'tenantName', 'displayName', 'title', 'label', 'url', 'href', 'id'];
const detailFields = ['product', 'tenantType', 'url', 'href', 'id'];

/** Returns the texts by which a person recognizes an entry of a list. */
function describeEntry(entry: unknown): Pick<AccountChoice, 'name' | 'detail'> {
  const findTexts = (fields: readonly string[]) =>
    fields.flatMap((field) => {
      const text = toSingleLine(toText(getValueAt(entry, [field])) ?? '');
      return text === '' ? [] : [[...text].slice(0, maxLabelLength).join('')];
    });
  const [name = 'Account without a name'] = findTexts(nameFields);
  const detail = findTexts(detailFields).filter((text) => text !== name);
  return { name, detail: detail.slice(0, 2).join(' · ') };
}
