/** Row of a CSV file by the names of its columns. An absent value is an empty cell. */
type CsvRow = { readonly [column: string]: string | number | undefined };

/** Formats rows as lines of a CSV file (RFC 4180). */
export function formatCsvLines(columns: readonly string[], rows: readonly CsvRow[]): string {
  return rows.map((row) => formatCsvLine(columns.map((column) => row[column]))).join('');
}

export function formatCsvLine(values: readonly CsvRow[string][]): string {
  return `${values.map(escapeField).join(',')}\r\n`;
}

/** Matches characters that begin a formula in a spreadsheet, or that it strips before one (OWASP, CSV injection). */
const formulaStart = /^[=+\-@\t\r\n\uff0b\uff0d\uff1d\uff20]/;

/** Escapes a cell, so that a text cannot run as a formula. Numbers come from Toolhost itself and need no protection. */
function escapeField(value: string | number | undefined): string {
  if (typeof value !== 'string') return value === undefined ? '' : String(value);
  const safeValue = formulaStart.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safeValue) ? `"${safeValue.replaceAll('"', '""')}"` : safeValue;
}
