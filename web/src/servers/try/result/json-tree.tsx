import { visible } from '../../../ui/text/visible.ts';

type Props = { value: unknown; path: string; onPick: (path: string) => void };

const mostShown = 50;

/** JSON whose every value can be clicked, up to as many entries as a person would look at. */
export function JsonTree({ value, path, onPick }: Props) {
  if (typeof value !== 'object' || value === null) {
    return (
      <button type="button" className="th-pick" onClick={() => onPick(path)} aria-label={`Pick ${visible(path)}`}>
        {visible(JSON.stringify(value) ?? '')}
      </button>
    );
  }
  const entries = Object.entries(value);
  const isArray = Array.isArray(value);
  return (
    <>
      {path ? (
        <button type="button" className="th-pick" onClick={() => onPick(path)} aria-label={`Pick ${visible(path)}`}>
          {isArray ? `[ ${entries.length} ]` : '{ }'}
        </button>
      ) : (
        <span>{isArray ? `[ ${entries.length} ]` : '{ }'}</span>
      )}
      {entries.slice(0, mostShown).map(([name, inner]) => (
        <div key={name} style={{ paddingLeft: '1.25rem' }}>
          <span style={{ color: 'var(--mantine-color-dimmed)' }}>{visible(name)}: </span>
          <JsonTree value={inner} path={path ? `${path}.${name}` : name} onPick={onPick} />
        </div>
      ))}
      {entries.length > mostShown && <div>… and {entries.length - mostShown} more</div>}
    </>
  );
}
