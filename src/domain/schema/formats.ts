/** The formats that are checked; any other `format` is a hint to the model only. */

const longestFormatted = 400;

const date = /^(\d{4})-(\d\d)-(\d\d)$/;
const time = /^(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d):(\d\d))$/i;
const uuid = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const octet = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const ipv4 = new RegExp(`^${octet}(?:\\.${octet}){3}$`);
const localPart =
  /^(?:"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\[\x20-\x7e])*"|[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*)$/i;
const hostName = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/i;

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isDate(text: string): boolean {
  const [year = 0, month = 0, day = 0] = (date.exec(text) ?? []).slice(1).map(Number);
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = month === 2 && isLeapYear ? 29 : (monthDays[month - 1] ?? 0);
  return day >= 1 && day <= days;
}

/** RFC 3339, 5.6; a leap second only where UTC has one. */
function isTime(text: string): boolean {
  const found = time.exec(text);
  if (!found) return false;
  const [hour = 0, minute = 0, second = 0] = found.slice(1, 4).map(Number);
  const [offsetHour, offsetMinute] = [Number(found[5] ?? 0), Number(found[6] ?? 0)];
  if (hour > 23 || minute > 59 || second > 60 || offsetHour > 23 || offsetMinute > 59) return false;
  if (second < 60) return true;
  const offset = (found[4] === '-' ? -1 : 1) * (offsetHour * 60 + offsetMinute);
  const day = 24 * 60;
  return (hour * 60 + minute - offset + day) % day === day - 1;
}

function isDateTime(text: string): boolean {
  const parts = text.split(/[t\s]/i);
  return parts.length === 2 && isDate(parts[0] as string) && isTime(parts[1] as string);
}

/** RFC 4291, 2.2: eight groups, one run of zeros left out, the last two perhaps as IPv4. */
function isIpv6(text: string): boolean {
  const [before = '', after, ...more] = text.split('::');
  if (more.length > 0) return false;
  const groupsOf = (half: string) => (half === '' ? [] : half.split(':'));
  const groups = [...groupsOf(before), ...groupsOf(after ?? '')];
  const last = groups.at(-1) ?? '';
  const endsAsIpv4 = last.includes('.') && !(after === '' && groups.length > 0);
  if (endsAsIpv4 && !ipv4.test(last)) return false;
  const size = groups.length + (endsAsIpv4 ? 1 : 0);
  const isSize = after === undefined ? size === 8 : size <= 7;
  return (
    isSize && groups.every((group, i) => /^[0-9a-f]{1,4}$/i.test(group) || (endsAsIpv4 && i === groups.length - 1))
  );
}

function isEmail(text: string): boolean {
  const at = text.lastIndexOf('@');
  const [name, host] = [text.slice(0, at), text.slice(at + 1)];
  if (at < 1 || name.length > 64 || host.length > 253 || !localPart.test(name)) return false;
  const literal = /^\[(ipv6:)?(.*)\]$/i.exec(host);
  if (literal) return literal[1] ? isIpv6(literal[2] as string) : ipv4.test(literal[2] as string);
  return hostName.test(host);
}

const tests = new Map<string, (text: string) => boolean>([
  ['date', isDate],
  ['time', isTime],
  ['date-time', isDateTime],
  ['uuid', (text) => uuid.test(text)],
  ['email', isEmail],
  ['ipv4', (text) => ipv4.test(text)],
  ['ipv6', isIpv6],
]);

/** The test of a format, or undefined for one that is not checked. Takes next to no time for a long text. */
export function formatTest(format: unknown): ((text: string) => boolean) | undefined {
  const test = tests.get(String(format));
  return test && ((text) => text.length <= longestFormatted && test(text));
}
