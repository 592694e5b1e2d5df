import { Checkbox, type CheckboxGroupProps } from '@mantine/core';
import { noticeEventNames, noticeEvents } from '../../../src/domain/notices.ts';
import { TwoColumns } from '../ui/two-columns.tsx';

type Props = Omit<CheckboxGroupProps, 'children'> & { disabled?: boolean };

/** Of which events somebody is told. */
export function EventChoice({ disabled, ...group }: Props) {
  return (
    <Checkbox.Group {...group} errorProps={{ role: 'alert' }}>
      <TwoColumns>
        {noticeEventNames.map((name) => (
          <Checkbox
            key={name}
            value={name}
            label={noticeEvents[name].label}
            description={noticeEvents[name].text}
            {...(disabled && { disabled })}
          />
        ))}
      </TwoColumns>
    </Checkbox.Group>
  );
}
