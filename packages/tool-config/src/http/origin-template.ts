import { parseUrl } from './read-url.ts';

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
