{{ config(materialized='table', partition_by=['day']) }}
select id, customer, amount, cast(day as date) as day from {{ ref('raw_orders') }}
