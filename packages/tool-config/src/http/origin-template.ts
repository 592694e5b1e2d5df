import { recordableFailure } from '@toolhost/errors/errors';
import { isDeclaredOrigin } from '../oauth-values.ts';
import { parseUrl } from './read-url.ts';
import { percentEncode } from './values.ts';

/** Origin of a URL that contains the value of a person: as one label in front of a fixed suffix, or as a whole. */
export type OriginTemplate = {
  /** Such as `https://{{site}}.atlassian.net`, or `{{instance_url}}`. */
  origin: string;
  host: string;
  /** Name of the value. */
  name: string;
  /** Fixed part of the host, without a port; undefined if the value is the whole origin. */
  suffix: string | undefined;
  /** Origin with another label in place of the value, for rules about URLs. */
  probe: string;
  /** Number of characters that the origin has in the URL. */
  length: number;
};

const placeholder = String.raw`\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}`;
const labelPattern = new RegExp(`^(https?://)${placeholder}(\\.[^/?#]*)`, 'i');
const originPattern = new RegExp(`^${placeholder}(?=[/?#]|$)`);
const probeLabel = 'x';

/** Returns the origin of a URL that begins with the value of a person; undefined for any other URL. */
export function parseOriginTemplate(url: string): OriginTemplate | undefined {
  const whole = originPattern.exec(url);
  if (whole) {
    const origin = `{{${whole[1]}}}`;
    const { length } = whole[0];
    return { origin, host: origin, name: whole[1] as string, suffix: undefined, probe: 'https://x.invalid', length };
  }
  const [text, scheme = '', name = '', rest = ''] = labelPattern.exec(url) ?? [];
  if (text === undefined || rest.includes('{{')) return undefined;
  const probe = parseUrl(scheme + probeLabel + rest);
  if (!probe?.hostname.startsWith(`${probeLabel}.`)) return undefined;
  if (probe.username !== '' || probe.password !== '') return undefined;
  const host = `{{${name}}}${probe.host.slice(probeLabel.length)}`;
  return {
    origin: `${probe.protocol}//${host}`,
    host,
    name,
    suffix: probe.hostname.slice(probeLabel.length + 1),
    probe: probe.origin,
    length: text.length,
  };
}

/** Returns the origin of a valid URL, which may contain the value of a person. */
export function getTemplateOrigin(url: string): string {
  return parseOriginTemplate(url)?.origin ?? new URL(url).origin;
}

/** Returns true for an origin that does not depend on a person. */
export function isFixedOrigin(origin: string): boolean {
  return !/[{*]/.test(origin);
}

const labelValuePattern = /^(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i;

/** Returns true if a value may be one label of a host, whatever `pattern` of its field allows. */
export function isHostLabel(value: string): boolean {
  return labelValuePattern.test(value);
}

/** Returns the value of a person as one label of a host. @throws ToolFailure invalid_arguments, without the value */
export function toHostLabel(name: string, value: string): string {
  if (isHostLabel(value)) return value.toLowerCase();
  throw recordableFailure(
    'invalid_arguments',
    `the value of ${name} cannot be part of a host; allowed: 1 to 63 letters, digits, and inner hyphens. Log in again to change it.`,
  );
}

/**
 * Renders an origin with the value of a person. `hosts` are the declared hosts of a whole origin.
 * @throws ToolFailure invalid_arguments, without the value
 */
export function renderOrigin(
  origin: string,
  { name, value, hosts = [] }: { name: string; value: string; hosts?: readonly string[] | undefined },
): string {
  const written = `{{${name}}}`;
  if (origin !== written) return origin.replace(written, () => toHostLabel(name, value));
  if (isDeclaredOrigin(value, hosts)) return value;
  throw recordableFailure(
    'invalid_arguments',
    `the value of ${name} is not an https origin of a host that the server declares. Log in again to change it.`,
  );
}

const anyPlaceholder = new RegExp(placeholder, 'g');

/**
 * Renders a valid URL of the provider with the values of a person: a label of the host is checked, and every other
 * value is percent-encoded. @throws ToolFailure invalid_arguments, without the value
 */
export function renderUrlValues(url: string, getValue: (name: string) => string): string {
  const template = parseOriginTemplate(url);
  const { name = '', length = 0 } = template ?? {};
  const origin = template ? renderOrigin(template.origin, { name, value: getValue(name) }) : '';
  const [target = '', ...query] = url.slice(length).split('?');
  const render = (text: string) =>
    text.replaceAll(anyPlaceholder, (_, inner: string) => percentEncode(getValue(inner)));
  const path = target.split('/').map((segment) => checkSegment(segment, render(segment)));
  return origin + [path.join('/'), ...query.map(render)].join('?');
}

/** Rejects a path segment that the value of a person removes or turns into a dot segment. */
function checkSegment(written: string, rendered: string): string {
  if (written === rendered || !/^(?:\.|%2e){0,2}$/i.test(rendered)) return rendered;
  throw recordableFailure(
    'invalid_arguments',
    'the value of a person must not make an empty, "." or ".." segment of a URL. Log in again to change it.',
  );
}
