"""What does a trainer's own configuration say of the plan and the recipe?"""
