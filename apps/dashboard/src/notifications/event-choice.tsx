import { Checkbox, type CheckboxGroupProps } from '@mantine/core';
import { notificationEventNames, notificationEvents } from '@toolhost/server/notification-events';
import { TwoColumns } from '../ui/two-columns.tsx';

type Props = Omit<CheckboxGroupProps, 'children'> & { disabled?: boolean };

export function EventChoice({ disabled = false, ...group }: Props) {
  return (
    <Checkbox.Group {...group} errorProps={{ role: 'alert' }}>
      <TwoColumns>
        {notificationEventNames.map((name) => {
          const { label, text } = notificationEvents[name];
          return <Checkbox key={name} value={name} label={label} description={text} disabled={disabled} />;
        })}
      </TwoColumns>
    </Checkbox.Group>
  );
}
