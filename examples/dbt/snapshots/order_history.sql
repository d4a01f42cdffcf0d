{% snapshot order_history %}
{{ config(target_schema='shop', unique_key='id', strategy='check', check_cols=['amount']) }}
select * from {{ ref('orders') }}
{% endsnapshot %}
