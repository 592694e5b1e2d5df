type CsvRow = { readonly [column: string]: string | number | undefined };

/** Lines of a CSV file (RFC 4180). */
export function csvLines(columns: readonly string[], rows: readonly CsvRow[]): string {
  return rows.map((row) => csvLine(columns.map((column) => row[column]))).join('');
}

export function csvLine(values: readonly CsvRow[string][]): string {
  return `${values.map(field).join(',')}\r\n`;
}

/** Characters that begin a formula in a spreadsheet, or that it strips before one (OWASP, CSV injection). */
const formulaStart = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

/** Escapes a cell. Texts cannot run as formulas; numbers are ours and need no protection. */
function field(value: string | number | undefined): string {
  if (typeof value !== 'string') return value === undefined ? '' : String(value);
  const text = formulaStart.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
