type Row = { readonly [column: string]: string | number | undefined };

/** Lines of a CSV file (RFC 4180). */
export function csvLines(columns: readonly string[], rows: readonly Row[]): string {
  return rows.map((row) => csvLine(columns.map((column) => row[column]))).join('');
}

export function csvLine(values: readonly Row[string][]): string {
  return `${values.map(field).join(',')}\r\n`;
}

/** What a spreadsheet takes for the beginning of a formula, or strips to find one (OWASP, CSV injection). */
const formulaStart = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

/** Text is kept from being run as a formula; numbers are ours. */
function field(value: string | number | undefined): string {
  if (typeof value !== 'string') return value === undefined ? '' : String(value);
  const text = formulaStart.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
